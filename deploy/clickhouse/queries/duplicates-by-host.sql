-- How many pages of each host say the same as another page of the crawl, word for word.
-- pages: with text · distinct_contents · duplicates: pages beyond the first of each content, the first being of any host ·
-- duplicate_rate: their share
WITH contents AS
(
    SELECT content_hash, min((last_crawled_at, url)) AS first
    FROM pages
    WHERE state = 'known' AND reason = 'ok' AND token_count > 0
    GROUP BY content_hash
)
SELECT
    host,
    count() AS pages,
    uniqExact(content_hash) AS distinct_contents,
    countIf(url != tupleElement(first, 2)) AS duplicates,
    round(duplicates / pages, 4) AS duplicate_rate
FROM pages
INNER JOIN contents USING (content_hash)
WHERE state = 'known' AND reason = 'ok' AND token_count > 0
GROUP BY host
ORDER BY duplicates DESC, pages DESC, host
LIMIT 100
