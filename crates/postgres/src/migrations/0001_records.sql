-- Connections, streams and records. Text sorts by bytes, as in the embedded store.

CREATE TABLE fetchwell.store (
    id      integer PRIMARY KEY CHECK (id = 1),
    uuid    text    NOT NULL,           -- which store a change token belongs to
    version bigint  NOT NULL            -- the version of the newest change
);

INSERT INTO fetchwell.store (id, uuid, version) VALUES (1, upper(replace(gen_random_uuid()::text, '-', '')), 0);

CREATE TABLE fetchwell.connections (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    connection_id text COLLATE "C" NOT NULL UNIQUE,
    connector_key text NOT NULL,
    display_name  text NOT NULL,
    manifest      text                  -- the connector's manifest, as it was given
);

CREATE TABLE fetchwell.streams (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    connection   bigint NOT NULL REFERENCES fetchwell.connections (id),
    name         text COLLATE "C" NOT NULL,
    record_count bigint NOT NULL DEFAULT 0,
    cursor_field text,                  -- what records are ordered by; their emitted_at when NULL
    UNIQUE (connection, name)
);

-- Fields that records were seen to have, with the kinds of their values as bits.
CREATE TABLE fetchwell.fields (
    stream bigint NOT NULL REFERENCES fetchwell.streams (id),
    name   text COLLATE "C" NOT NULL,
    kinds  bigint NOT NULL,
    PRIMARY KEY (stream, name)
);

-- A deleted record stays as a row without data, so that readers of changes learn of it.
-- Every change takes the next version of the whole store.
CREATE TABLE fetchwell.records (
    stream     bigint NOT NULL REFERENCES fetchwell.streams (id),
    key        text COLLATE "C" NOT NULL,
    data       text,                    -- JSON as it was written: jsonb would change numbers and the order of fields
    emitted_at text,                    -- when it was deleted, for a deleted one
    sort_value bytea  NOT NULL,         -- what it is ordered by, see sort_key.rs
    version    bigint NOT NULL,
    PRIMARY KEY (stream, key)
);

CREATE INDEX records_in_order ON fetchwell.records (stream, sort_value, key) WHERE data IS NOT NULL;

CREATE INDEX records_by_version ON fetchwell.records (stream, version);
