-- Streams of which a generation lacks records, because a configuration hid them during a build. This table is created by
-- the first of them, so releases that do not know it read and write the file as before.
CREATE TABLE IF NOT EXISTS skipped_streams (
    generation INTEGER NOT NULL,
    stream     INTEGER NOT NULL,           -- row of the stream in the store
    after      INTEGER NOT NULL,           -- version of the store after which, up to that of the generation, records lack
    PRIMARY KEY (generation, stream)
) STRICT, WITHOUT ROWID;
