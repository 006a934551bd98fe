-- Which log the rows of this database come from: a sink writes only where its own generation stands.
CREATE TABLE IF NOT EXISTS sinks
(
    application_id String,
    generation String
)
ENGINE = MergeTree
ORDER BY application_id
SETTINGS non_replicated_deduplication_window = 1000
