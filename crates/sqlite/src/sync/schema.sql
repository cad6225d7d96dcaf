-- Imports that stay current. These tables are created by the first of them, so stores without any have none, and
-- releases that do not know them read and write such a store as before.

CREATE TABLE IF NOT EXISTS imports (
    id           INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again, for a synchronization in progress
    connection   INTEGER NOT NULL UNIQUE REFERENCES connections (id) ON DELETE CASCADE,
    origin       TEXT    NOT NULL,           -- the absolute path that is read
    kind         TEXT    NOT NULL,
    options      TEXT    NOT NULL,           -- JSON
    last_attempt TEXT,
    last_sync    TEXT,                       -- the last attempt that read the origin
    added        INTEGER NOT NULL DEFAULT 0, -- records of the last attempt, by effect
    changed      INTEGER NOT NULL DEFAULT 0,
    deleted      INTEGER NOT NULL DEFAULT 0,
    held         INTEGER NOT NULL DEFAULT 0, -- records that are missing at the origin and were not deleted
    problem      TEXT                        -- the error of the last attempt
) STRICT;

-- A file of an origin.
CREATE TABLE IF NOT EXISTS import_items (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    import      INTEGER NOT NULL REFERENCES imports (id) ON DELETE CASCADE,
    path        TEXT    NOT NULL,
    stamp       TEXT,                        -- size, times and id of the file; NULL until it is completely read
    fingerprint BLOB,                        -- the start of the SHA-256 of its content; NULL for large files
    is_recent   INTEGER NOT NULL DEFAULT 0,  -- it was changed so shortly before it was read that the stamp can miss a change
    absence     INTEGER NOT NULL DEFAULT 0,  -- 1: it is missing at the origin, 2: its content is at another path there
    problem     TEXT,                        -- why it could not be read
    UNIQUE (import, path)
) STRICT;

-- The records that each item gave. See `role.rs`.
CREATE TABLE IF NOT EXISTS item_records (
    item   INTEGER NOT NULL REFERENCES import_items (id) ON DELETE CASCADE,
    record INTEGER NOT NULL REFERENCES records (id) ON DELETE CASCADE,
    role   INTEGER NOT NULL,
    PRIMARY KEY (item, record)
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS item_records_by_record ON item_records (record);

CREATE INDEX IF NOT EXISTS absent_import_items ON import_items (import) WHERE absence <> 0;

CREATE INDEX IF NOT EXISTS unreadable_import_items ON import_items (import) WHERE problem IS NOT NULL;

CREATE INDEX IF NOT EXISTS stale_item_records ON item_records (item) WHERE role = 0;

-- Items of which records were removed on request. They are read again when they change, or when the import is added again.
CREATE TABLE IF NOT EXISTS removed_items (
    item INTEGER PRIMARY KEY REFERENCES import_items (id) ON DELETE CASCADE
) STRICT;
