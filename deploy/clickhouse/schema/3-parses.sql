-- What each page said when it was last read: by the newest parser, then the newest response. The whole text is in the
-- archive (weir get --text).
CREATE TABLE IF NOT EXISTS parses
(
    url_hash FixedString(16) DEFAULT unhex(url_hash_hex),
    url_hash_hex String EPHEMERAL,
    url String,
    host String,
    site String,
    fetch_id String,
    fetched_at DateTime64(3, 'UTC'),
    parse_version UInt16,
    version UInt64 MATERIALIZED bitShiftLeft(toUInt64(parse_version), 48) + toUnixTimestamp64Milli(fetched_at),
    title String,
    snippet String,
    language LowCardinality(String),
    content_hash FixedString(16) DEFAULT unhex(content_hash_hex),
    content_hash_hex String EPHEMERAL,
    simhash UInt64 COMMENT 'words without the most frequent ones: recall',
    simhash2 UInt64 COMMENT 'runs of 3 and 5 words: precision',
    token_count UInt32,
    noindex Bool,
    nofollow Bool,
    canonical_url String,
    link_count UInt32,
    extracted Map(String, Array(String))
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (site, host, url_hash)
SETTINGS non_replicated_deduplication_window = 1000
