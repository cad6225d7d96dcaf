-- Values of the fields of records in columns, see columns/. They are derived from the records.

-- Records of a stream by their versions, from the one after `after_version` to `last_version`, as they were when they were built.
CREATE TABLE fetchwell.column_segments (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stream        bigint   NOT NULL REFERENCES fetchwell.streams (id) ON DELETE CASCADE,
    after_version bigint   NOT NULL,
    last_version  bigint   NOT NULL,
    as_of         bigint   NOT NULL,    -- version of the store up to which `outdated` is complete
    records       integer  NOT NULL,
    outdated      bytea    NOT NULL,    -- bits of the records that were changed or deleted since, by their numbers
    format        smallint NOT NULL,    -- format of the blocks
    mark_parts    bigint   NOT NULL,    -- bits of the parts of `marks` that there are
    columns       text[] COLLATE "C" NOT NULL   -- names of the columns that there are
);

CREATE INDEX column_segments_by_stream ON fetchwell.column_segments (stream);

-- Blocks of a segment: `keys`, `rows` and `marks`, and those of each column. Part 0 of a column has its values, the others its texts.
CREATE TABLE fetchwell.column_blocks (
    segment bigint  NOT NULL REFERENCES fetchwell.column_segments (id) ON DELETE CASCADE,
    name    text COLLATE "C" NOT NULL,
    part    integer NOT NULL,
    data    bytea   NOT NULL,
    PRIMARY KEY (segment, name, part)
);

ALTER TABLE fetchwell.column_blocks ALTER data SET STORAGE EXTERNAL;

-- Roles that may read or write records may do the same with their columns.
DO $$
DECLARE
    granted record;
BEGIN
    FOR granted IN
        SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END AS role, privilege_type AS privilege
        FROM pg_class, aclexplode(relacl)
        WHERE oid = 'fetchwell.records'::regclass AND privilege_type IN ('SELECT', 'INSERT', 'UPDATE') AND grantee <> relowner
    LOOP
        EXECUTE format('GRANT %s ON fetchwell.column_segments, fetchwell.column_blocks TO %s', granted.privilege, granted.role);
        IF granted.privilege = 'UPDATE' THEN
            EXECUTE format('GRANT DELETE ON fetchwell.column_segments, fetchwell.column_blocks TO %s', granted.role);
        END IF;
    END LOOP;
END
$$;
