-- Why something was refused or changed its state: one row a reason. Append-only.
CREATE TABLE IF NOT EXISTS decisions
(
    processor LowCardinality(String) COMMENT 'canonicalize, dedupe, parse: of the links of a page; schedule: of a URL',
    url String COMMENT 'canonicalize, dedupe, parse: the page that has the links; schedule: the URL',
    host String,
    site String,
    fetch_id String,
    code LowCardinality(String),
    count UInt64 COMMENT 'links or URLs with this reason',
    examples Array(String) COMMENT 'at most three',
    evidence String,
    at DateTime64(3, 'UTC')
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(at)
ORDER BY (site, host, at, url, code)
SETTINGS non_replicated_deduplication_window = 1000
