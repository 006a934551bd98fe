-- Which hosts give trouble: share of requests without a good answer, and until when they are left alone.
-- requests · failures: no response, 429 or 5xx · failure_rate · most_often: the commonest of them · back_off_until
SELECT
    f.host AS host,
    f.requests AS requests,
    f.failures AS failures,
    round(failures / requests, 4) AS failure_rate,
    f.most_often AS most_often,
    h.back_off_until AS back_off_until,
    h.back_off_reason AS back_off_reason
FROM
(
    SELECT
        site,
        host,
        count() AS requests,
        countIf(failed) AS failures,
        topKIf(1)(if(fetch_status > 0, toString(fetch_status), error), failed)[1] AS most_often
    FROM
    (
        SELECT site, host, fetch_status, error, fetch_status = 0 OR fetch_status = 429 OR fetch_status >= 500 AS failed
        FROM fetches
        WHERE outcome_kind IN ('page', 'robots', 'dns') AND (started_at IS NOT NULL OR error != 'none')
    )
    GROUP BY site, host
) AS f
LEFT JOIN hosts AS h FINAL ON h.site = f.site AND h.host = f.host
WHERE failures > 0
ORDER BY failures DESC, host
LIMIT 100
