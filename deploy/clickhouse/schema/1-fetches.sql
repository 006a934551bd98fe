-- One row for each outcome that the crawl recorded: pages, robots.txt, DNS look-ups, and the ends of visits. Append-only.
-- Column names that Common Crawl's index has mean the same here. A hash of zeros, an empty text and a zero = none.
CREATE TABLE IF NOT EXISTS fetches
(
    fetch_id String COMMENT 'unique: visit, entry, attempt, redirect',
    lease_id String COMMENT 'the visit',
    outcome_kind LowCardinality(String) COMMENT 'page, robots, dns, visit-end',
    entry_kind LowCardinality(String),
    host String,
    site String COMMENT 'registrable domain',
    gate LowCardinality(String) COMMENT 'what shares one request budget: an address',
    address String,
    url String COMMENT 'as requested',
    url_hash FixedString(16) DEFAULT unhex(url_hash_hex) COMMENT 'of the canonical URL, as in page_states; pages only',
    url_hash_hex String EPHEMERAL,
    depth UInt16,
    attempt UInt16,
    fetch_time DateTime64(3, 'UTC') COMMENT 'when the request started; where there was none, when the outcome was known',
    started_at Nullable(DateTime64(3, 'UTC')) COMMENT 'of the request; NULL = no server was asked',
    ended_at DateTime64(3, 'UTC') COMMENT 'of the response',
    headers_ms Float64,
    fetch_status UInt16 COMMENT '0 = no response',
    fetch_redirect String COMMENT 'absolute target of a 3xx',
    error LowCardinality(String) COMMENT 'none, or why there is no whole response',
    error_message String,
    content_mime_type LowCardinality(String),
    content_charset LowCardinality(String),
    content_digest String COMMENT 'SHA-1 of the payload, base32, as in the WARC record',
    content_truncated LowCardinality(String) COMMENT 'length, time, disconnect, type',
    raw_bytes UInt64 COMMENT 'as received',
    body_bytes UInt64 COMMENT 'content coding undone',
    revisit Bool COMMENT 'unchanged: the WARC record has no body',
    content_hash FixedString(16) DEFAULT unhex(content_hash_hex) COMMENT 'of the normalized words',
    content_hash_hex String EPHEMERAL,
    simhash UInt64,
    token_count UInt32,
    link_count UInt32,
    warc_filename String,
    warc_record_offset UInt64,
    warc_record_length UInt64,
    delay_ms Float64 COMMENT 'least gap in force: from the end of the last response of the host to the start of this request',
    delay_reason LowCardinality(String),
    robots_version LowCardinality(String) COMMENT 'of the robots.txt that allowed it',
    retry_after_ms UInt64,
    unstarted UInt32 COMMENT 'visit-end: URLs of the visit that were not asked for',
    reason LowCardinality(String) COMMENT 'visit-end: why'
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(fetch_time)
ORDER BY (site, host, fetch_time, fetch_id)
SETTINGS non_replicated_deduplication_window = 1000
