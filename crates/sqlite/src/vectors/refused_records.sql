-- Records with a text that the model refused. This table is created by the first of them, so releases that do not know it read
-- and write the file as before.
CREATE TABLE IF NOT EXISTS refused_records (
    generation INTEGER NOT NULL,
    record     INTEGER NOT NULL,           -- row of the record in the store
    PRIMARY KEY (generation, record)
) STRICT, WITHOUT ROWID;
