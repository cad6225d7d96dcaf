-- Chunks with the columns of the contract, for people and their tools. Earlier releases created the view with fewer columns.
DROP VIEW IF EXISTS chunks;

-- The vectors are in a file of their own, which a view cannot read: `embedding` is NULL.
CREATE VIEW chunks AS
    SELECT id, document_id, project_id, content, CAST(NULL AS BLOB) AS embedding, lower(content) AS content_tsv,
           chunk_index, token_count, metadata, created_at
    FROM (SELECT c.*,
                 CAST(substr(CAST(r.data ->> '$.text' AS BLOB), c.first_byte + 1, c.end_byte - c.first_byte) AS TEXT)
                     AS content
          FROM chunk_ranges c JOIN documents d ON d.id = c.document_id JOIN records r ON r.id = d.record);
