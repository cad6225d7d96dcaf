-- Projects of documents. These tables are created by the first project, so stores without any have none, and releases
-- that do not know them read and write such a store as before.

-- A project is a connection, and its documents are the records of the connection's stream `documents`.
CREATE TABLE IF NOT EXISTS projects (
    id             TEXT    NOT NULL PRIMARY KEY,
    slug           TEXT    NOT NULL UNIQUE CHECK (length(slug) BETWEEN 1 AND 100),
    name           TEXT    NOT NULL CHECK (length(name) BETWEEN 1 AND 255),
    settings       TEXT    NOT NULL DEFAULT '{}' CHECK (json_valid(settings)),
    corpus_version INTEGER NOT NULL DEFAULT 1,
    created_at     TEXT    NOT NULL,
    updated_at     TEXT    NOT NULL,
    connection     INTEGER NOT NULL UNIQUE REFERENCES connections (id) ON DELETE CASCADE
) STRICT;

-- The text of a document is the field `text` of its record.
CREATE TABLE IF NOT EXISTS documents (
    id           TEXT    NOT NULL PRIMARY KEY,
    project_id   TEXT    NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    path         TEXT    NOT NULL CHECK (length(path) BETWEEN 1 AND 1000),
    title        TEXT    CHECK (length(title) <= 500),
    content_hash TEXT    NOT NULL CHECK (length(content_hash) = 64),
    category     TEXT    NOT NULL DEFAULT 'general' CHECK (length(category) BETWEEN 1 AND 50),
    metadata     TEXT    NOT NULL DEFAULT '{}' CHECK (json_valid(metadata)),
    created_at   TEXT    NOT NULL,
    updated_at   TEXT    NOT NULL,
    record       INTEGER NOT NULL UNIQUE REFERENCES records (id) ON DELETE CASCADE,
    UNIQUE (project_id, path),
    UNIQUE (project_id, id)
) STRICT;

CREATE INDEX IF NOT EXISTS idx_documents_project_category ON documents (project_id, category);

-- The content of a chunk is a range of the bytes of its document's text, so that the text is kept once.
CREATE TABLE IF NOT EXISTS chunk_ranges (
    id          TEXT    NOT NULL PRIMARY KEY,
    document_id TEXT    NOT NULL,
    project_id  TEXT    NOT NULL,
    first_byte  INTEGER NOT NULL,
    end_byte    INTEGER NOT NULL CHECK (end_byte > first_byte),
    chunk_index INTEGER NOT NULL,
    token_count INTEGER NOT NULL,
    metadata    TEXT    NOT NULL DEFAULT '{}' CHECK (json_valid(metadata)),
    created_at  TEXT    NOT NULL,
    UNIQUE (document_id, chunk_index),
    FOREIGN KEY (project_id, document_id) REFERENCES documents (project_id, id) ON DELETE CASCADE
) STRICT;

CREATE INDEX IF NOT EXISTS idx_chunks_project_id ON chunk_ranges (project_id);

CREATE TABLE IF NOT EXISTS search_history (
    id              TEXT    NOT NULL PRIMARY KEY,
    project_id      TEXT    NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    query           TEXT    NOT NULL,
    query_embedding BLOB,               -- 32-bit floats, little endian
    result_ids      TEXT    NOT NULL,   -- JSON
    feedback        TEXT    CHECK (feedback IN ('helpful', 'not_helpful')),
    latency_ms      INTEGER NOT NULL,
    cache_hit       INTEGER NOT NULL DEFAULT 0,
    created_at      TEXT    NOT NULL
) STRICT;

-- The caller of a search, who alone can give feedback, as a hash. Searches without authentication have none.
CREATE TABLE IF NOT EXISTS search_callers (
    search_id TEXT NOT NULL PRIMARY KEY REFERENCES search_history (id) ON DELETE CASCADE,
    caller    TEXT NOT NULL
) STRICT;

CREATE INDEX IF NOT EXISTS idx_search_history_project ON search_history (project_id, created_at DESC);
