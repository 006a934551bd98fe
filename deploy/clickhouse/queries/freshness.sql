-- How old the stored pages are: percentiles of the time since a page was last fetched, by host.
-- host: (all) = all hosts together · pages: known(ok) · p50_age_hours … max_age_hours · overdue: pages whose next fetch is past
SELECT
    if(host = '', '(all)', host) AS host,
    count() AS pages,
    round(quantileExact(0.5)(age_hours), 2) AS p50_age_hours,
    round(quantileExact(0.9)(age_hours), 2) AS p90_age_hours,
    round(quantileExact(0.99)(age_hours), 2) AS p99_age_hours,
    round(max(age_hours), 2) AS max_age_hours,
    countIf(next_crawl_at < now64(3)) AS overdue
FROM
(
    SELECT host, next_crawl_at, dateDiff('second', assumeNotNull(last_crawled_at), now()) / 3600 AS age_hours
    FROM pages
    WHERE state = 'known' AND reason = 'ok' AND last_crawled_at IS NOT NULL
)
GROUP BY GROUPING SETS ((host), ())
ORDER BY pages DESC, host
LIMIT 100
