-- Words of records, for search. They are derived from the records: the words are those of fetchwell, and the server only
-- stores and looks them up.

CREATE TABLE fetchwell.texts (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stream      bigint   NOT NULL,
    key         text COLLATE "C" NOT NULL,
    words       tsvector NOT NULL,      -- see words.rs
    length      integer  NOT NULL,      -- number of words
    title_words integer  NOT NULL,      -- number of words of the title, which come first
    time        bigint   NOT NULL,      -- second at which the record was written; the least number when it is not known
    similarity  bigint   NOT NULL,      -- hash that is similar for similar texts
    UNIQUE (stream, key)
);

CREATE INDEX texts_by_word ON fetchwell.texts USING gin (words);

CREATE INDEX texts_by_time ON fetchwell.texts (time, id);

-- Number of records of a stream that have a word.
CREATE TABLE fetchwell.terms (
    word    text COLLATE "C" NOT NULL,
    stream  bigint NOT NULL,
    records bigint NOT NULL,
    PRIMARY KEY (word, stream)
) WITH (fillfactor = 80);

ALTER TABLE fetchwell.streams
    ADD COLUMN word_count  bigint  NOT NULL DEFAULT 0,  -- words of all records
    ADD COLUMN indexed     integer NOT NULL DEFAULT 0,  -- version of the words, or 0 while words of records are missing
    ADD COLUMN indexed_key text COLLATE "C";            -- last record that has words of the newest version, until all have

-- Roles that may read or write records may do the same with their words.
DO $$
DECLARE
    granted record;
BEGIN
    FOR granted IN
        SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END AS role, privilege_type AS privilege
        FROM pg_class, aclexplode(relacl)
        WHERE oid = 'fetchwell.records'::regclass AND privilege_type IN ('SELECT', 'INSERT', 'UPDATE') AND grantee <> relowner
    LOOP
        EXECUTE format('GRANT %s ON fetchwell.texts, fetchwell.terms TO %s', granted.privilege, granted.role);
        IF granted.privilege = 'UPDATE' THEN
            EXECUTE format('GRANT DELETE ON fetchwell.texts TO %s', granted.role);
        END IF;
    END LOOP;
END
$$;
