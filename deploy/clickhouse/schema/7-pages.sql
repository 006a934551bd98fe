-- Each admitted URL once: its state, and what it said when it was last read.
-- state and reason are what holds now: a URL that is queued while its host is parked, or while its origin's robots.txt
-- cannot be reached, counts as parked for that reason, since that is why it is not asked for; own_state and own_reason
-- are the URL's alone. Visits that are under way are not in the log: their URLs are queued here until their outcome.
CREATE OR REPLACE VIEW pages AS
SELECT
    s.url_hash AS url_hash,
    s.url AS url,
    s.host AS host,
    s.site AS site,
    s.last_crawled_at AS last_crawled_at,
    if(host_waits, h.back_off_until, s.next_crawl_at) AS next_crawl_at,
    s.content_hash AS content_hash,
    s.simhash AS simhash,
    s.http_status AS http_status,
    s.change_count AS change_count,
    if(host_waits OR origin_waits, 'parked', s.state) AS state,
    multiIf(host_waits, splitByChar(':', h.back_off_reason)[1], origin_waits, 'robots-unreachable', s.reason) AS reason,
    s.state AS own_state,
    s.reason AS own_reason,
    multiIf(host_waits, h.back_off_reason, origin_waits, 'its robots.txt cannot be had', s.evidence) AS evidence,
    s.since AS since,
    s.depth AS depth,
    s.importance AS importance,
    s.duplicate_of AS duplicate_of,
    s.last_fetch_id AS last_fetch_id,
    p.title AS title,
    p.snippet AS snippet,
    p.language AS language,
    p.token_count AS token_count,
    p.link_count AS link_count,
    p.canonical_url AS canonical_url,
    p.noindex AS noindex,
    p.nofollow AS nofollow,
    p.extracted AS extracted,
    p.simhash2 AS simhash2,
    p.parse_version AS parse_version,
    (s.state = 'queued') AND (h.back_off_reason != '') AS host_waits,
    (s.state = 'queued') AND has(h.unreachable_origins, extract(s.url, '^[a-z]+://[^/]+')) AS origin_waits
FROM page_states AS s FINAL
LEFT JOIN parses AS p FINAL ON p.site = s.site AND p.host = s.host AND p.url_hash = s.url_hash
LEFT JOIN hosts AS h FINAL ON h.site = s.site AND h.host = s.host
SETTINGS join_use_nulls = 0
