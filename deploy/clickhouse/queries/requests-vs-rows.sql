-- Whether the table counts once: each outcome is one row, each response has its WARC record.
-- outcome_kind · rows · distinct_fetch_ids: must be rows · requests: that reached a server · responses · archived: with a
-- WARC record · unarchived: responses without one, must be 0
SELECT
    outcome_kind,
    count() AS rows,
    uniqExact(fetch_id) AS distinct_fetch_ids,
    countIf(started_at IS NOT NULL) AS requests,
    countIf(fetch_status > 0) AS responses,
    countIf(warc_filename != '') AS archived,
    countIf(fetch_status > 0 AND warc_filename = '') AS unarchived
FROM fetches
GROUP BY outcome_kind
ORDER BY rows DESC, outcome_kind
