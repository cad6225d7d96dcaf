-- Changes of the numbers in `terms` by large batches, as one row for each batch and stream. They are merged in large steps,
-- see search/terms.rs.

CREATE TABLE fetchwell.term_changes (
    stream  bigint    NOT NULL,
    words   text[] COLLATE "C" NOT NULL,
    records integer[] NOT NULL          -- the change of the number of records with each word
);

-- Roles that may read or write records may do the same with these changes.
DO $$
DECLARE
    granted record;
BEGIN
    FOR granted IN
        SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END AS role, privilege_type AS privilege
        FROM pg_class, aclexplode(relacl)
        WHERE oid = 'fetchwell.records'::regclass AND privilege_type IN ('SELECT', 'INSERT', 'UPDATE') AND grantee <> relowner
    LOOP
        EXECUTE format('GRANT %s ON fetchwell.term_changes TO %s', granted.privilege, granted.role);
        IF granted.privilege = 'UPDATE' THEN
            EXECUTE format('GRANT DELETE ON fetchwell.term_changes TO %s', granted.role);
        END IF;
    END LOOP;
END
$$;

-- Words of most records stay in their rows: a search that scores thousands of records would read them elsewhere.
-- It is left out if the table is in use for long, or if the server has smaller pages.
DO $$
BEGIN
    SET LOCAL lock_timeout = '5s';
    ALTER TABLE fetchwell.texts SET (toast_tuple_target = 8160);
EXCEPTION WHEN lock_not_available OR invalid_parameter_value THEN
    NULL;
END
$$;
SET LOCAL lock_timeout = DEFAULT;
