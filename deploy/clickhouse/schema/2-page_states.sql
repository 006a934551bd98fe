-- The latest state of each admitted URL (FINAL, or the view pages: older versions stay until ClickHouse merges them).
-- The state is the URL's own. One that waits in its host's queue says queued here, whether or not its host may be asked
-- now; what the host adds is in hosts, so that parking a host with five million URLs is one row. The view pages puts
-- both together.
CREATE TABLE IF NOT EXISTS page_states
(
    url_hash FixedString(16) DEFAULT unhex(url_hash_hex) COMMENT 'XXH64 with seeds 0 and 1 of the canonical URL',
    url_hash_hex String EPHEMERAL,
    url String COMMENT 'canonical',
    host String,
    site String,
    sequence UInt64 COMMENT 'version: grows with every state of the URL',
    state LowCardinality(String) COMMENT 'queued, leased, parked, known, gone',
    reason LowCardinality(String),
    evidence String,
    since DateTime64(3, 'UTC'),
    next_crawl_at Nullable(DateTime64(3, 'UTC')),
    depth UInt16,
    importance Float64,
    change_count UInt32 COMMENT 'how often the content was another than the time before',
    last_crawled_at Nullable(DateTime64(3, 'UTC')),
    http_status UInt16,
    content_hash FixedString(16) DEFAULT unhex(content_hash_hex),
    content_hash_hex String EPHEMERAL,
    simhash UInt64,
    duplicate_of String,
    last_fetch_id String
)
ENGINE = ReplacingMergeTree(sequence)
ORDER BY (site, host, url_hash)
SETTINGS non_replicated_deduplication_window = 1000
