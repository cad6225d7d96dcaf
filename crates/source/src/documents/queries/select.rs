//! Queries of the tables of projects, for every database, and how their rows are read.
//!
//! The tables have the same columns in every database. The SQL here has signs for what differs, which a [`Dialect`] replaces:
//! `@` begins the name of a table and `?` the number of a parameter, `!id`, `!text` and `!number` cast what is before them, and
//! `[` and `]` enclose a time. A row of another program, which is not valid, is left out.

use std::str::FromStr;

use fetchwell_core::saturate::saturated;

use crate::documents::{
    Category, CategoryCount, CopiedDocument, CountedSearches, Document, DocumentList, DocumentRef,
    KnownDocument, Project, ProjectRef, SearchGrouping, SearchRecord, Uuid,
};

/// SQL for projects, with the columns of [`project_of`].
const PROJECT: &str = "SELECT id!text, slug, name, settings!text, corpus_version!number, [created_at], [updated_at] FROM @projects";

/// Columns of [`document_of`], of the table `d`.
const DOCUMENT: &str =
    "d.id!text, d.project_id!text, d.path, d.title, d.content_hash, d.category, d.metadata!text,
     [d.created_at], [d.updated_at]";

/// Forms in which the SQL of a database differs from that of others.
#[derive(Debug)]
pub struct Dialect {
    /// Prefix of the names of tables.
    pub schema: &'static str,
    /// Sign of a parameter, before its number.
    pub parameter: &'static str,
    /// Cast of a parameter to an id.
    pub id: &'static str,
    /// Cast of a parameter, or of a column of another type, to a text.
    pub text: &'static str,
    /// Cast of a parameter or a column to an integer of 64 bits.
    pub number: &'static str,
    /// SQL before and after a time, which gives it in RFC 3339.
    pub time: [&'static str; 2],
    /// Column of the results of a search, as JSON.
    pub results: &'static str,
    /// Order of searches of the same time, the last first.
    pub last: &'static str,
    /// Condition of a time before the days in parameter 2. A number beyond the calendar is before all times.
    pub is_expired: &'static str,
}

/// Value of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueryValue {
    /// A text, or null.
    Text(Option<String>),
    /// Number of a column or parameter.
    Number(i64),
}

/// A row of a query.
pub trait DocumentRow {
    /// Returns the text in a column, or `None` for null.
    fn text(&self, column: usize) -> Option<&str>;

    /// Returns the number in a column, or `None` for null.
    fn number(&self, column: usize) -> Option<i64>;
}

/// A query with the values of its parameters.
#[derive(Debug)]
pub struct DocumentQuery<Item> {
    /// The SQL, in the dialect of the database.
    pub sql: String,
    /// Values of the parameters, from number 1.
    pub values: Vec<QueryValue>,
    /// Reads a row. Returns `None` for one that is not valid.
    pub read: fn(&dyn DocumentRow) -> Option<Item>,
}

impl Dialect {
    /// Returns SQL of this module in the dialect.
    fn sql(&self, sql: &str) -> String {
        let Self { schema, parameter, id, text, number, time: [before, after], .. } = self;
        let sql = sql.replace('@', schema).replace('?', parameter).replace('[', before).replace(']', after);
        sql.replace("!id", id).replace("!text", text).replace("!number", number)
    }

    fn query<Item>(
        &self,
        sql: &str,
        values: Vec<QueryValue>,
        read: fn(&dyn DocumentRow) -> Option<Item>,
    ) -> DocumentQuery<Item> {
        DocumentQuery { sql: self.sql(sql), values, read }
    }

    /// Returns the query for all projects, in the order of their slugs.
    pub fn projects(&self) -> DocumentQuery<Project> {
        self.query(&format!("{PROJECT} ORDER BY slug"), Vec::new(), project_of)
    }

    /// Returns the query for one project.
    pub fn project(&self, named: &ProjectRef) -> DocumentQuery<Project> {
        let condition = match named {
            ProjectRef::Slug(_) => "slug = ?1",
            ProjectRef::Id(_) => "id = ?1!id",
        };
        self.query(&format!("{PROJECT} WHERE {condition}"), vec![text(&named)], project_of)
    }

    /// Returns the query for a page of the documents of a project.
    pub fn documents(&self, project: Uuid, list: &DocumentList) -> DocumentQuery<Document> {
        let DocumentList { category, after, limit } = list;
        let sql = format!(
            "SELECT {DOCUMENT} FROM @documents d
             WHERE d.project_id = ?1!id AND (?2!text IS NULL OR d.category = ?2) AND d.path > ?3
             ORDER BY d.path LIMIT ?4"
        );
        let category = category.as_ref().map(ToString::to_string);
        let after = after.as_ref().map_or("", |path| path.as_str());
        let values = vec![text(&project), QueryValue::Text(category), text(&after), number(*limit)];
        self.query(&sql, values, |row| document_of(row, 0))
    }

    /// Returns the query for one document.
    pub fn document(&self, project: Uuid, named: &DocumentRef) -> DocumentQuery<Document> {
        let (condition, value) = match named {
            DocumentRef::Path(path) => ("d.path = ?2", text(&path)),
            DocumentRef::Id(id) => ("d.id = ?2!id", text(&id)),
        };
        let sql = format!("SELECT {DOCUMENT} FROM @documents d WHERE d.project_id = ?1!id AND {condition}");
        self.query(&sql, vec![text(&project), value], |row| document_of(row, 0))
    }

    /// Returns the columns of [`document_of`], of the table `d`.
    pub fn document_columns(&self) -> String {
        self.sql(DOCUMENT)
    }

    /// Returns the query for the numbers of documents of each category, in the order of their names.
    pub fn categories(&self, project: Uuid) -> DocumentQuery<CategoryCount> {
        let sql = "SELECT category, count(*) FROM @documents WHERE project_id = ?1!id GROUP BY category ORDER BY category";
        self.query(sql, vec![text(&project)], |row| {
            Some(CategoryCount { category: name(row, 0)?, documents: row.number(1)?.unsigned_abs() })
        })
    }

    /// Returns the query for the documents of a project that an import knows, in the order of their paths.
    pub fn known_documents(&self, project: &str) -> DocumentQuery<KnownDocument> {
        let sql = "SELECT id!text, path, content_hash FROM @documents WHERE project_id = ?1!id ORDER BY path";
        self.query(sql, vec![text(&project)], |row| {
            Some(KnownDocument { id: name(row, 0)?, path: owned(row, 1), content_hash: owned(row, 2) })
        })
    }

    /// Returns the query for the documents of a project to be copied, in the order of their ids.
    pub fn copied_documents(&self, project: Uuid) -> DocumentQuery<CopiedDocument> {
        let sql = "SELECT id!text, path, category, content_hash FROM @documents WHERE project_id = ?1!id ORDER BY id";
        self.query(sql, vec![text(&project)], |row| {
            let (path, category, content_hash) = (owned(row, 1), owned(row, 2), owned(row, 3));
            Some(CopiedDocument { id: name(row, 0)?, path, category, content_hash })
        })
    }

    /// Returns the query for the ids of the documents and chunks of a project, in the order of both. `table` has the chunks.
    pub fn copied_chunks(&self, project: Uuid, table: &str) -> DocumentQuery<(Uuid, Uuid)> {
        let sql = format!(
            "SELECT document_id!text, id!text FROM @{table} WHERE project_id = ?1!id ORDER BY document_id, chunk_index"
        );
        self.query(&sql, vec![text(&project)], |row| Some((name(row, 0)?, name(row, 1)?)))
    }

    /// Returns the query for the last searches of a project, the newest first, without those that are too old.
    pub fn searches(&self, project: &Project, limit: usize) -> DocumentQuery<SearchRecord> {
        let Self { results, last, is_expired, .. } = self;
        let sql = format!(
            "SELECT id!text, project_id!text, query, {results}, feedback, latency_ms!number,
                 CASE WHEN cache_hit THEN 1 ELSE 0 END!number, [created_at]
             FROM @search_history WHERE project_id = ?1!id AND NOT ({is_expired})
             ORDER BY created_at DESC{last} LIMIT ?3"
        );
        self.query(&sql, vec![text(&project.id), kept_days(project), number(limit)], search_of)
    }

    /// Returns the query for the numbers of searches of a project in groups, without those that are too old.
    pub fn counted_searches(&self, project: &Project, by: SearchGrouping) -> DocumentQuery<CountedSearches> {
        let value = match by {
            SearchGrouping::CacheHit => "CASE WHEN cache_hit THEN 'true' ELSE 'false' END",
            SearchGrouping::Feedback => "feedback!text",
            SearchGrouping::Day => "substr([created_at], 1, 10)",
        };
        let sql = format!(
            "SELECT {value}, latency_ms!number, count(*) FROM @search_history
             WHERE project_id = ?1!id AND NOT ({}) GROUP BY 1, 2",
            self.is_expired
        );
        self.query(&sql, vec![text(&project.id), kept_days(project)], |row| {
            let number = |column| row.number(column).unwrap_or_default().unsigned_abs();
            let value = row.text(0).map(str::to_owned);
            Some(CountedSearches { value, latency_ms: number(1), count: number(2) })
        })
    }

    /// Returns a statement on the searches of a project that are older than it keeps them. `verb` is `DELETE` or `SELECT 1`.
    pub fn expired(&self, verb: &str, project: &Project) -> DocumentQuery<()> {
        let sql = format!("{verb} FROM @search_history WHERE project_id = ?1!id AND {}", self.is_expired);
        self.query(&sql, vec![text(&project.id), kept_days(project)], |_row| Some(()))
    }
}

fn text(value: &impl ToString) -> QueryValue {
    QueryValue::Text(Some(value.to_string()))
}

fn number(value: usize) -> QueryValue {
    QueryValue::Number(saturated(value))
}

fn kept_days(project: &Project) -> QueryValue {
    QueryValue::Number(project.settings.kept_days().into())
}

/// Parses a name in a column.
fn name<Name: FromStr>(row: &dyn DocumentRow, column: usize) -> Option<Name> {
    row.text(column)?.parse().ok()
}

fn owned(row: &dyn DocumentRow, column: usize) -> String {
    row.text(column).unwrap_or_default().to_owned()
}

fn project_of(row: &dyn DocumentRow) -> Option<Project> {
    Some(Project {
        id: name(row, 0)?,
        slug: name(row, 1)?,
        name: owned(row, 2),
        settings: serde_json::from_str(row.text(3).unwrap_or_default()).unwrap_or_default(),
        corpus_version: row.number(4).unwrap_or(1),
        created_at: owned(row, 5),
        updated_at: owned(row, 6),
    })
}

/// Reads a document from [`Dialect::document_columns`], of which the first is at `at`.
pub fn document_of(row: &dyn DocumentRow, at: usize) -> Option<Document> {
    Some(Document {
        id: name(row, at)?,
        project_id: name(row, at + 1)?,
        path: name(row, at + 2)?,
        title: row.text(at + 3).map(str::to_owned),
        content_hash: owned(row, at + 4),
        category: name(row, at + 5).unwrap_or_else(Category::general),
        metadata: serde_json::from_str(row.text(at + 6).unwrap_or_default()).unwrap_or_default(),
        created_at: owned(row, at + 7),
        updated_at: owned(row, at + 8),
    })
}

fn search_of(row: &dyn DocumentRow) -> Option<SearchRecord> {
    Some(SearchRecord {
        id: name(row, 0)?,
        project_id: name(row, 1)?,
        query: owned(row, 2),
        result_ids: serde_json::from_str(row.text(3).unwrap_or_default()).unwrap_or_default(),
        feedback: name(row, 4),
        latency_ms: row.number(5).unwrap_or_default().unsigned_abs(),
        cache_hit: row.number(6) == Some(1),
        created_at: owned(row, 7),
    })
}
