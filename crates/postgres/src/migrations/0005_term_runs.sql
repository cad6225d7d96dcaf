-- Numbers of records of each word in runs, see terms/. They replace one row for each word and stream, which took as much space as
-- the words of the records.

CREATE TABLE fetchwell.term_runs (
    id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    bytes bigint NOT NULL               -- size of its blocks
);

CREATE TABLE fetchwell.term_blocks (
    run        bigint NOT NULL,
    first_word text COLLATE "C" NOT NULL,
    terms      text COLLATE "C" NOT NULL,   -- lines of a word, a tab, and the numbers of streams, such as `3:120 7:-1`
    PRIMARY KEY (run, first_word)
);

-- Processes of an earlier release go on reading and writing `terms` and `term_changes` until they are replaced. What they write is
-- added here. `fetchwell store migrate` drops both tables when it finds nothing else to do.
CREATE FUNCTION fetchwell.forward_terms() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    new_run bigint;
    blocks bigint;
    changes text := CASE TG_TABLE_NAME || ' ' || TG_OP
        WHEN 'terms INSERT' THEN 'SELECT word, stream, records FROM added'
        WHEN 'terms UPDATE' THEN
            'SELECT word, stream, added.records - removed.records FROM added JOIN removed USING (word, stream)'
        WHEN 'terms DELETE' THEN 'SELECT word, stream, -records FROM removed'
        WHEN 'term_changes INSERT' THEN
            'SELECT c.word, stream, c.records FROM added, unnest(words, added.records) AS c (word, records)'
        ELSE 'SELECT c.word, stream, -c.records FROM removed, unnest(words, removed.records) AS c (word, records)'
    END;
BEGIN
    INSERT INTO fetchwell.term_runs (bytes) VALUES (0) RETURNING id INTO new_run;
    EXECUTE 'INSERT INTO fetchwell.term_blocks (run, first_word, terms)
        SELECT $1, word, word || chr(9) || string_agg(stream || '':'' || records, '' '') || chr(10) FROM (
            SELECT word, stream, sum(records) AS records FROM (' || changes || ') AS c (word, stream, records)
            GROUP BY word, stream HAVING sum(records) <> 0
        ) s GROUP BY word' USING new_run;
    GET DIAGNOSTICS blocks = ROW_COUNT;
    IF blocks = 0 THEN
        DELETE FROM fetchwell.term_runs WHERE id = new_run;
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER forward_inserts AFTER INSERT ON fetchwell.terms REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION fetchwell.forward_terms();
CREATE TRIGGER forward_updates AFTER UPDATE ON fetchwell.terms REFERENCING OLD TABLE AS removed NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION fetchwell.forward_terms();
CREATE TRIGGER forward_deletes AFTER DELETE ON fetchwell.terms REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION fetchwell.forward_terms();
CREATE TRIGGER forward_inserts AFTER INSERT ON fetchwell.term_changes REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION fetchwell.forward_terms();
CREATE TRIGGER forward_deletes AFTER DELETE ON fetchwell.term_changes REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION fetchwell.forward_terms();

-- One run with the numbers of all records.
WITH numbers AS (
    SELECT word, stream, sum(records) AS records FROM (
        SELECT word, stream, records FROM fetchwell.terms
        UNION ALL
        SELECT c.word, t.stream, c.records FROM fetchwell.term_changes t JOIN fetchwell.streams s ON s.id = t.stream,
            unnest(t.words, t.records) AS c (word, records)
    ) known GROUP BY word, stream HAVING sum(records) <> 0
), lines AS (
    SELECT word, word || chr(9) || string_agg(stream || ':' || records, ' ' ORDER BY stream) || chr(10) AS line
    FROM numbers GROUP BY word
), placed AS (
    SELECT word, line, sum(octet_length(line)) OVER (ORDER BY word COLLATE "C") / 1900 AS block FROM lines
), blocks AS (
    SELECT min(word COLLATE "C") AS first_word, string_agg(line, '' ORDER BY word COLLATE "C") AS terms FROM placed GROUP BY block
), run AS (
    INSERT INTO fetchwell.term_runs (bytes)
    SELECT sum(octet_length(terms)) FROM blocks HAVING count(*) > 0 RETURNING id
)
INSERT INTO fetchwell.term_blocks (run, first_word, terms)
SELECT run.id, blocks.first_word, blocks.terms FROM run, blocks;

-- A new database has no process of an earlier release.
DO $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM fetchwell.streams) THEN
        DROP TABLE fetchwell.terms, fetchwell.term_changes;
        DROP FUNCTION fetchwell.forward_terms();
    END IF;
END
$$;

-- Roles that may read or write records may do the same with these numbers.
DO $$
DECLARE
    granted record;
BEGIN
    FOR granted IN
        SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END AS role, privilege_type AS privilege
        FROM pg_class, aclexplode(relacl)
        WHERE oid = 'fetchwell.records'::regclass AND privilege_type IN ('SELECT', 'INSERT', 'UPDATE') AND grantee <> relowner
    LOOP
        EXECUTE format('GRANT %s ON fetchwell.term_runs, fetchwell.term_blocks TO %s', granted.privilege, granted.role);
        IF granted.privilege = 'UPDATE' THEN
            EXECUTE format('GRANT DELETE ON fetchwell.term_runs, fetchwell.term_blocks TO %s', granted.role);
        END IF;
    END LOOP;
END
$$;
