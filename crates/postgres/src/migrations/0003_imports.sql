-- Imports that stay current, with the files of their origins and the records that each file gave.

CREATE TABLE fetchwell.imports (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    connection   bigint NOT NULL UNIQUE REFERENCES fetchwell.connections (id) ON DELETE CASCADE,
    origin       text   NOT NULL,           -- the absolute path that is read
    kind         text   NOT NULL,
    options      text   NOT NULL,           -- JSON
    last_attempt text,
    last_sync    text,                      -- the last attempt that read the origin
    added        bigint NOT NULL DEFAULT 0, -- records of the last attempt, by effect
    changed      bigint NOT NULL DEFAULT 0,
    deleted      bigint NOT NULL DEFAULT 0,
    held         bigint NOT NULL DEFAULT 0, -- records that are missing at the origin and were not deleted
    problem      text                       -- the error of the last attempt
);

-- A file of an origin.
CREATE TABLE fetchwell.import_items (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    import      bigint NOT NULL REFERENCES fetchwell.imports (id) ON DELETE CASCADE,
    path        text COLLATE "C" NOT NULL,
    stamp       text,                           -- size, times and id of the file; NULL until it is completely read
    fingerprint bytea,                          -- the start of the SHA-256 of its content; NULL for large files
    is_recent   boolean NOT NULL DEFAULT false, -- it was changed so shortly before it was read that the stamp can miss a change
    absence     integer NOT NULL DEFAULT 0,     -- 1: it is missing at the origin, 2: its content is at another path there
    problem     text,                           -- why it could not be read
    UNIQUE (import, path)
);

-- The records that each item gave. A role is 0 for a record that the item no longer gives, 1 for one that it gives, and 2 for
-- one with a key that another item has, too.
CREATE TABLE fetchwell.item_records (
    item   bigint  NOT NULL REFERENCES fetchwell.import_items (id) ON DELETE CASCADE,
    stream bigint  NOT NULL,
    key    text COLLATE "C" NOT NULL,
    role   integer NOT NULL,
    PRIMARY KEY (item, stream, key)
);

CREATE INDEX item_records_by_record ON fetchwell.item_records (stream, key);

CREATE INDEX absent_import_items ON fetchwell.import_items (import) WHERE absence <> 0;

CREATE INDEX unreadable_import_items ON fetchwell.import_items (import) WHERE problem IS NOT NULL;

CREATE INDEX stale_item_records ON fetchwell.item_records (item) WHERE role = 0;

-- Roles that may read or write records may do the same with imports.
DO $$
DECLARE
    granted record;
BEGIN
    FOR granted IN
        SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END AS role, privilege_type AS privilege
        FROM pg_class, aclexplode(relacl)
        WHERE oid = 'fetchwell.records'::regclass AND privilege_type IN ('SELECT', 'INSERT', 'UPDATE') AND grantee <> relowner
    LOOP
        EXECUTE format('GRANT %s ON fetchwell.imports, fetchwell.import_items, fetchwell.item_records TO %s',
            granted.privilege, granted.role);
        IF granted.privilege = 'UPDATE' THEN
            EXECUTE format('GRANT DELETE ON fetchwell.import_items, fetchwell.item_records TO %s', granted.role);
        END IF;
    END LOOP;
END
$$;
