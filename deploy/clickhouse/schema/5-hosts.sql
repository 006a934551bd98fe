-- What is known of each host: its delay, its robots.txt, and until when it is left alone.
CREATE TABLE IF NOT EXISTS hosts
(
    host String,
    site String,
    version UInt64 COMMENT 'place in the log: the highest is the latest',
    address String,
    gate String,
    delay_ms Float64,
    delay_reason LowCardinality(String),
    back_off_until Nullable(DateTime64(3, 'UTC')),
    back_off_reason String COMMENT 'as reason: evidence; empty = the host is not parked',
    origins Array(String) COMMENT 'scheme, host and port',
    robots_verdicts Array(String) COMMENT 'rules, allow-all, disallow-all; in the order of origins',
    robots_versions Array(String),
    unreachable_origins Array(String) COMMENT 'whose robots.txt could not be had: all of them is disallowed',
    updated_at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (site, host)
SETTINGS non_replicated_deduplication_window = 1000
