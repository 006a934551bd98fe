-- Which responses are the largest.
-- body_bytes: content coding undone · raw_bytes: as received · content_truncated: why it was cut, '' = it was not
SELECT body_bytes, raw_bytes, content_mime_type, content_truncated, url, fetch_time
FROM fetches
WHERE outcome_kind = 'page' AND fetch_status > 0
ORDER BY body_bytes DESC, fetch_time, url
LIMIT 50
