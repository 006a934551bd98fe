-- Requests that came too early: a request on a host begun sooner after the end of the one before than the delay in force.
-- Must be empty. gap_ms: what it was · delay_ms: what it had to be
SELECT host, fetch_id, url, started_at, previous_end, gap_ms, delay_ms, delay_reason
FROM
(
    SELECT
        host, fetch_id, url, started_at, delay_ms, delay_reason,
        max(ended_at) OVER earlier AS previous_end,
        count() OVER earlier AS requests_before,
        dateDiff('millisecond', previous_end, assumeNotNull(started_at)) AS gap_ms
    FROM fetches
    WHERE started_at IS NOT NULL AND outcome_kind IN ('page', 'robots')
    WINDOW earlier AS (PARTITION BY host ORDER BY started_at, fetch_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)
WHERE requests_before > 0 AND gap_ms < delay_ms
ORDER BY started_at
LIMIT 1000
