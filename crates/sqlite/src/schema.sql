-- The embedded store. SQLite holds the truth; the search index beside it is derived from it.

CREATE TABLE store (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    uuid    TEXT    NOT NULL,           -- which store an index belongs to
    version INTEGER NOT NULL            -- the version of the newest change
) STRICT;

CREATE TABLE connections (
    id            INTEGER PRIMARY KEY,
    connection_id TEXT NOT NULL UNIQUE,
    connector_key TEXT NOT NULL,
    display_name  TEXT NOT NULL,
    manifest      TEXT                  -- the connector's manifest, as it was given
) STRICT;

CREATE TABLE streams (
    id           INTEGER PRIMARY KEY,
    connection   INTEGER NOT NULL REFERENCES connections (id),
    name         TEXT    NOT NULL,
    record_count INTEGER NOT NULL DEFAULT 0,
    cursor_field TEXT,                  -- what records are ordered by; their emitted_at when NULL
    UNIQUE (connection, name)
) STRICT;

-- Fields that records were seen to have, with the kinds of their values as bits.
CREATE TABLE fields (
    stream INTEGER NOT NULL REFERENCES streams (id),
    name   TEXT    NOT NULL,
    kinds  INTEGER NOT NULL,
    PRIMARY KEY (stream, name)
) STRICT, WITHOUT ROWID;

-- A deleted record stays as a row without data, so that readers of changes learn of it.
-- Every change takes the next version of the whole store.
CREATE TABLE records (
    id         INTEGER PRIMARY KEY,
    stream     INTEGER NOT NULL REFERENCES streams (id),
    key        TEXT    NOT NULL,
    data       TEXT,
    emitted_at TEXT,                    -- when it was deleted, for a deleted one
    sort_value ANY     NOT NULL,        -- what it is ordered by, see sort_value.rs
    version    INTEGER NOT NULL,
    UNIQUE (stream, key)
) STRICT;

CREATE INDEX records_in_order ON records (stream, sort_value, key) WHERE data IS NOT NULL;

CREATE INDEX records_by_version ON records (version);
