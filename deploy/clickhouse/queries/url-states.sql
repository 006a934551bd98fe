-- Where every admitted URL stands; the sum is all that were admitted.
-- state, reason: as in weir status (a queued URL of a parked host is parked) · urls · next: the earliest look at one of them
SELECT state, reason, count() AS urls, min(next_crawl_at) AS next
FROM pages
GROUP BY state, reason
ORDER BY urls DESC, state, reason
