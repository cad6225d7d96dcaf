-- The vectors of a store, in a file beside it. Everything here is derived from the store and can be deleted.

-- All vectors of a generation come from one model. A new model, or a store with another id, starts a new generation.
CREATE TABLE generations (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    model      TEXT    NOT NULL,
    dimensions INTEGER NOT NULL,
    store      TEXT    NOT NULL,           -- id of the store
    version    INTEGER NOT NULL,           -- version of the store up to which the generation is complete
    revision   INTEGER NOT NULL,           -- grows with every change of the generation
    is_current INTEGER NOT NULL,           -- 1 for the generation that is searched
    omitted    INTEGER NOT NULL,           -- bytes of texts beyond the limit of chunks
    probe      BLOB    NOT NULL            -- vector of a fixed text, by which a changed model is recognized
) STRICT;

CREATE TABLE chunks (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    generation INTEGER NOT NULL,
    record     INTEGER NOT NULL,           -- row of the record, its stream and connection in the store
    stream     INTEGER NOT NULL,
    connection INTEGER NOT NULL,
    first_byte INTEGER NOT NULL,           -- place in the text of the record
    end_byte   INTEGER NOT NULL,
    digest     BLOB    NOT NULL,           -- of the embedded text, so that equal texts are embedded once
    scale      REAL    NOT NULL,           -- largest number of the vector
    codes      BLOB    NOT NULL            -- each number as a 16-bit share of it
) STRICT;

CREATE INDEX chunks_by_record ON chunks (generation, record);

CREATE INDEX chunks_by_digest ON chunks (digest);
