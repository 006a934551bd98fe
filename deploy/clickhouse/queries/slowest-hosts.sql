-- Which hosts take longest to answer.
-- responses · p50_ms, p95_ms: from the request to the end of the response · delay_ms, delay_reason: the gap it has now
SELECT
    f.host AS host,
    count() AS responses,
    round(quantileExact(0.5)(f.took_ms)) AS p50_ms,
    round(quantileExact(0.95)(f.took_ms)) AS p95_ms,
    any(h.delay_ms) AS delay_ms,
    any(h.delay_reason) AS delay_reason
FROM
(
    SELECT site, host, dateDiff('millisecond', assumeNotNull(started_at), ended_at) AS took_ms
    FROM fetches
    WHERE fetch_status > 0 AND started_at IS NOT NULL
) AS f
LEFT JOIN hosts AS h FINAL ON h.site = f.site AND h.host = f.host
GROUP BY f.host
ORDER BY p50_ms DESC, host
LIMIT 50
