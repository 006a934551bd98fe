-- How fast the crawl was, minute by minute (the last day of it).
-- minute · responses · pages: of them, pages with status 200 · hosts · mbit: received · errors: requests without response
SELECT
    toStartOfMinute(fetch_time) AS minute,
    countIf(fetch_status > 0) AS responses,
    countIf(fetch_status = 200 AND outcome_kind = 'page') AS pages,
    uniqExact(host) AS hosts,
    round(sum(raw_bytes) * 8 / 1e6, 2) AS mbit,
    countIf(fetch_status = 0) AS errors
FROM fetches
WHERE started_at IS NOT NULL AND fetch_time > (SELECT max(fetch_time) FROM fetches) - INTERVAL 1 DAY
GROUP BY minute
ORDER BY minute
