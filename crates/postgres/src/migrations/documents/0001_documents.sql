-- Projects of documents: the tables and indexes of the document-search contract, in the schema `fetchwell`. They need
-- pgvector 0.8.0. A project is a connection of the same name, and a document is a record of its stream `documents`, whose
-- key is the id of the document.

CREATE TABLE fetchwell.projects (
    id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    slug VARCHAR(100) COLLATE "C" UNIQUE NOT NULL,
    name VARCHAR(255) NOT NULL,
    settings JSONB DEFAULT '{}',
    corpus_version INTEGER DEFAULT 1,
    created_at TIMESTAMPTZ DEFAULT NOW(),
    updated_at TIMESTAMPTZ DEFAULT NOW()
);

CREATE TABLE fetchwell.documents (
    id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    project_id UUID NOT NULL REFERENCES fetchwell.projects(id) ON DELETE CASCADE,
    path VARCHAR(1000) COLLATE "C" NOT NULL,
    title VARCHAR(500),
    content_hash VARCHAR(64) NOT NULL,
    category VARCHAR(50) COLLATE "C" DEFAULT 'general',
    metadata JSONB DEFAULT '{}',
    created_at TIMESTAMPTZ DEFAULT NOW(),
    updated_at TIMESTAMPTZ DEFAULT NOW(),
    UNIQUE (project_id, path),
    UNIQUE (project_id, id)
);

-- The chunks of a document tile its text. `metadata` has their position and headings, and as `embedding` the id of the model
-- of the vector, or `hash` for a vector that stands for none and is not searched.
CREATE TABLE fetchwell.chunks (
    id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    document_id UUID NOT NULL REFERENCES fetchwell.documents(id) ON DELETE CASCADE,
    project_id UUID NOT NULL REFERENCES fetchwell.projects(id) ON DELETE CASCADE,
    content TEXT NOT NULL,
    embedding vector(1024) NOT NULL,
    content_tsv tsvector GENERATED ALWAYS AS (to_tsvector('english', content)) STORED,
    chunk_index INTEGER NOT NULL,
    token_count INTEGER,
    metadata JSONB DEFAULT '{}',
    created_at TIMESTAMPTZ DEFAULT NOW(),
    -- Its index is also that of a document's deletion.
    UNIQUE (document_id, chunk_index),
    FOREIGN KEY (project_id, document_id) REFERENCES fetchwell.documents(project_id, id) ON DELETE CASCADE
);

CREATE TABLE fetchwell.search_history (
    id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    project_id UUID NOT NULL REFERENCES fetchwell.projects(id) ON DELETE CASCADE,
    query TEXT NOT NULL,
    query_embedding vector(1024),
    result_ids UUID[] NOT NULL,
    feedback VARCHAR(20) CHECK (feedback IN ('helpful', 'not_helpful')),
    latency_ms INTEGER,
    cache_hit BOOLEAN DEFAULT FALSE,
    created_at TIMESTAMPTZ DEFAULT NOW()
);

-- The caller of a search, who alone can give feedback, as a hash. Searches without authentication have none.
CREATE TABLE fetchwell.search_callers (
    search_id UUID PRIMARY KEY REFERENCES fetchwell.search_history(id) ON DELETE CASCADE,
    caller    text NOT NULL
);

-- Models that made vectors, with their vector of a fixed text, by which a changed model is recognized.
CREATE TABLE fetchwell.embedding_models (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model      text    NOT NULL,
    dimensions integer NOT NULL,
    probe      real[]  NOT NULL
);

CREATE INDEX idx_chunks_embedding ON fetchwell.chunks USING hnsw (embedding vector_cosine_ops)
    WITH (m = 16, ef_construction = 64);
CREATE INDEX idx_chunks_content_tsv ON fetchwell.chunks USING gin (content_tsv);
CREATE INDEX idx_chunks_project_id ON fetchwell.chunks (project_id);
CREATE INDEX idx_documents_project_category ON fetchwell.documents (project_id, category);
CREATE INDEX idx_search_history_project ON fetchwell.search_history (project_id, created_at DESC);

CREATE FUNCTION fetchwell.set_updated_at() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.updated_at := clock_timestamp();
    RETURN NEW;
END
$$;

CREATE TRIGGER projects_updated_at BEFORE UPDATE ON fetchwell.projects
    FOR EACH ROW EXECUTE FUNCTION fetchwell.set_updated_at();

CREATE TRIGGER documents_updated_at BEFORE UPDATE ON fetchwell.documents
    FOR EACH ROW EXECUTE FUNCTION fetchwell.set_updated_at();

-- Roles that may read or write records may do the same with documents.
DO $$
DECLARE
    granted record;
BEGIN
    FOR granted IN
        SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END AS role, privilege_type AS privilege
        FROM pg_class, aclexplode(relacl)
        WHERE oid = 'fetchwell.records'::regclass AND privilege_type IN ('SELECT', 'INSERT', 'UPDATE') AND grantee <> relowner
    LOOP
        EXECUTE format(
            'GRANT %s ON fetchwell.projects, fetchwell.documents, fetchwell.chunks, fetchwell.search_history,
                 fetchwell.search_callers, fetchwell.embedding_models, fetchwell.document_migrations TO %s',
            granted.privilege, granted.role);
        IF granted.privilege = 'UPDATE' THEN
            EXECUTE format('GRANT DELETE ON fetchwell.documents, fetchwell.chunks, fetchwell.search_history TO %s', granted.role);
        END IF;
    END LOOP;
END
$$;
