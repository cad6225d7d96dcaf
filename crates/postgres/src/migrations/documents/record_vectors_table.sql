-- Table of one generation. TABLE_NAME stands for its name, and COLUMN_TYPE for the type of its vectors.
CREATE TABLE fetchwell.TABLE_NAME (
    record     bigint  NOT NULL REFERENCES fetchwell.texts (id) ON DELETE CASCADE,
    part       integer NOT NULL,
    stream     bigint  NOT NULL,
    first_byte integer NOT NULL,            -- place of the chunk in the text of its record
    end_byte   integer NOT NULL,
    digest     bytea   NOT NULL,            -- of the embedded text: equal texts are embedded once
    embedding  COLUMN_TYPE NOT NULL,
    PRIMARY KEY (record, part)
);

CREATE INDEX TABLE_NAME_stream ON fetchwell.TABLE_NAME (stream);

CREATE INDEX TABLE_NAME_digest ON fetchwell.TABLE_NAME (digest);

DO $$
DECLARE
    granted record;
BEGIN
    FOR granted IN
        SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END AS role, privilege_type AS privilege
        FROM pg_class, aclexplode(relacl)
        WHERE oid = 'fetchwell.records'::regclass AND privilege_type IN ('SELECT', 'INSERT', 'UPDATE') AND grantee <> relowner
    LOOP
        EXECUTE format('GRANT %s ON fetchwell.TABLE_NAME TO %s', granted.privilege, granted.role);
        IF granted.privilege = 'UPDATE' THEN
            EXECUTE format('GRANT DELETE ON fetchwell.TABLE_NAME TO %s', granted.role);
        END IF;
    END LOOP;
END
$$;
