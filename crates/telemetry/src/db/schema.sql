-- Calls, and what they come to. Nothing here says what was asked or found.

CREATE TABLE telemetry (
    id                    INTEGER PRIMARY KEY AUTOINCREMENT,
    request_id            TEXT    NOT NULL CHECK (length(request_id) BETWEEN 1 AND 128),
    endpoint              TEXT    NOT NULL,     -- the template of a path, or tool:NAME
    caller                TEXT             CHECK (length(caller) = 8),  -- the grant, as in logs
    timestamp             TEXT    NOT NULL CHECK (timestamp GLOB '????-??-??T??:??:??.???Z'),
    outcome               TEXT    NOT NULL,     -- ok, cancelled, source_error, or a code of an error
    estimated_tokens      INTEGER NOT NULL CHECK (estimated_tokens >= 0),
    original_tokens       INTEGER          CHECK (original_tokens >= 0),
    response_bytes        INTEGER NOT NULL CHECK (response_bytes >= 0),
    item_count            INTEGER NOT NULL CHECK (item_count >= 0),
    latency_us            INTEGER NOT NULL CHECK (latency_us >= 0),
    pagination_used       INTEGER NOT NULL CHECK (pagination_used IN (0, 1)),
    summarization_used    INTEGER NOT NULL CHECK (summarization_used IN (0, 1)),
    chunking_used         INTEGER NOT NULL CHECK (chunking_used IN (0, 1)),
    oversized             INTEGER NOT NULL CHECK (oversized IN (0, 1)),
    optimization_metadata TEXT    NOT NULL CHECK (json_valid(optimization_metadata)),
    latency_ms            INTEGER GENERATED ALWAYS AS (latency_us / 1000) VIRTUAL,
    tokens_per_item       REAL    GENERATED ALWAYS AS (CAST(estimated_tokens AS REAL) / max(item_count, 1)) VIRTUAL,
    CHECK (NOT (pagination_used AND chunking_used))
) STRICT;

-- Totals of every call since the file was created, deleted rows included.
CREATE TABLE totals (
    id             INTEGER PRIMARY KEY CHECK (id = 1),
    requests       INTEGER NOT NULL DEFAULT 0,
    paginated      INTEGER NOT NULL DEFAULT 0,
    summarized     INTEGER NOT NULL DEFAULT 0,
    chunked        INTEGER NOT NULL DEFAULT 0,
    oversized      INTEGER NOT NULL DEFAULT 0,
    response_bytes INTEGER NOT NULL DEFAULT 0,
    latency_us     INTEGER NOT NULL DEFAULT 0,
    lists          INTEGER NOT NULL DEFAULT 0
) STRICT;

INSERT INTO totals (id) VALUES (1);
