-- Positions that cursors refer to. Nothing here outlives its cursor.

CREATE TABLE positions (
    reference BLOB    PRIMARY KEY,      -- as the cursor has it
    kind      INTEGER NOT NULL,         -- see codec.rs
    issued_ms INTEGER NOT NULL,         -- since 1970
    offset    INTEGER NOT NULL,         -- how many rows came before
    used_ms   INTEGER,                  -- when it was used first; active from then on
    binding   TEXT    NOT NULL,
    position  TEXT    NOT NULL,         -- its owner's, JSON
    expires_ms INTEGER                  -- by the lifetime of the process that wrote it; null in rows of earlier versions
) STRICT;

CREATE INDEX positions_by_issue ON positions (issued_ms);
CREATE INDEX positions_by_expiry ON positions (coalesce(expires_ms, issued_ms + 3600000));

-- The latest time that any process has seen: a clock that is set back does not revive a cursor.
CREATE TABLE clock (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    seen_ms INTEGER NOT NULL
) STRICT;

INSERT INTO clock (id, seen_ms) VALUES (1, 0);
