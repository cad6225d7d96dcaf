-- Vectors of records. A generation has the vectors of one model, in a table of its own: `record_vectors_ID`. It is
-- filled while the current one is searched, and replaces that when it is complete.

CREATE TABLE fetchwell.vector_generations (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model       text    NOT NULL,
    dimensions  integer NOT NULL,
    probe       real[]  NOT NULL,               -- the model's vector of a fixed text, by which a changed model is recognized
    is_current  boolean NOT NULL DEFAULT false, -- searches use it
    is_replaced boolean NOT NULL DEFAULT false, -- it is removed as soon as no reader uses it
    omitted     bigint  NOT NULL DEFAULT 0      -- bytes of long texts that are in no chunk
);

CREATE UNIQUE INDEX current_vector_generation ON fetchwell.vector_generations (is_current) WHERE is_current;

-- Version of the last embedded change of each stream, by generation.
CREATE TABLE fetchwell.vector_coverage (
    generation bigint NOT NULL REFERENCES fetchwell.vector_generations (id) ON DELETE CASCADE,
    stream     bigint NOT NULL REFERENCES fetchwell.streams (id) ON DELETE CASCADE,
    version    bigint NOT NULL,
    PRIMARY KEY (stream, generation)
);

-- Records with a text that the model refuses.
CREATE TABLE fetchwell.refused_records (
    generation bigint NOT NULL REFERENCES fetchwell.vector_generations (id) ON DELETE CASCADE,
    record     bigint NOT NULL REFERENCES fetchwell.texts (id) ON DELETE CASCADE,
    PRIMARY KEY (record, generation)
);

-- Vectors of chunks by a model that replaces another one. They are put into `chunks` together, when all chunks have them.
CREATE TABLE fetchwell.chunk_vectors (
    chunk     uuid PRIMARY KEY REFERENCES fetchwell.chunks (id) ON DELETE CASCADE,
    model     bigint NOT NULL REFERENCES fetchwell.embedding_models (id) ON DELETE CASCADE,
    embedding vector(1024) NOT NULL
);

ALTER TABLE fetchwell.embedding_models
    ADD COLUMN is_searched boolean NOT NULL DEFAULT true;  -- false until its vectors have replaced those of another model

-- Roles that may read or write records may do the same with vectors.
DO $$
DECLARE
    granted record;
BEGIN
    FOR granted IN
        SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END AS role, privilege_type AS privilege
        FROM pg_class, aclexplode(relacl)
        WHERE oid = 'fetchwell.records'::regclass AND privilege_type IN ('SELECT', 'INSERT', 'UPDATE') AND grantee <> relowner
    LOOP
        EXECUTE format('GRANT %s ON fetchwell.vector_generations, fetchwell.vector_coverage, fetchwell.refused_records,
            fetchwell.chunk_vectors TO %s', granted.privilege, granted.role);
        IF granted.privilege = 'UPDATE' THEN
            EXECUTE format('GRANT DELETE ON fetchwell.vector_generations, fetchwell.vector_coverage, fetchwell.refused_records,
                fetchwell.chunk_vectors TO %s', granted.role);
        END IF;
    END LOOP;
END
$$;
