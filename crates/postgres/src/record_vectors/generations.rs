//! Generations of the vectors of records. Each is of one model and has a table of its own.

use deadpool_postgres::Object;
use fetchwell_core::saturate::saturated;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, Row};

use crate::extension::{owns_table, use_extension};
use crate::transaction::begin_write;
use crate::url::PostgresUrl;
use crate::vectors::models::StoredModel;

/// Statements that create the table of a generation.
const CREATE_TABLE: &str = include_str!("../migrations/documents/record_vectors_table.sql");

/// Maximum numbers of dimensions that pgvector indexes, in single and in half precision.
const MAX_INDEXED: usize = 2_000;
const MAX_INDEXED_HALF: usize = 4_000;

/// Query for all generations. The first columns are those of a model.
const SELECT: &str =
    "SELECT id, model, dimensions, probe, is_current, is_replaced, omitted FROM fetchwell.vector_generations";

/// Type of the column of vectors, by the number of dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VectorColumn {
    /// Single precision, with an index.
    Full,
    /// Half precision, with an index.
    Half,
    /// Single precision. pgvector has no index for so many dimensions.
    Unindexed,
}

impl VectorColumn {
    pub(super) fn new(dimensions: usize) -> Self {
        if dimensions <= MAX_INDEXED {
            Self::Full
        } else if dimensions <= MAX_INDEXED_HALF {
            Self::Half
        } else {
            Self::Unindexed
        }
    }

    /// Returns the SQL type of the column.
    pub(super) fn sql(self, dimensions: usize) -> String {
        let name = if self == Self::Half { "halfvec" } else { "vector" };
        format!("{name}({dimensions})")
    }

    /// Returns the operator class of the index, if there is one.
    fn operators(self) -> Option<&'static str> {
        match self {
            Self::Full => Some("vector_cosine_ops"),
            Self::Half => Some("halfvec_cosine_ops"),
            Self::Unindexed => None,
        }
    }
}

/// Vectors of one model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Generation {
    pub(super) model: StoredModel,
    /// True if searches use it.
    pub(super) is_current: bool,
    /// True if another generation replaced it. It is removed as soon as no reader uses it.
    pub(super) is_replaced: bool,
    /// Bytes of long texts that are in no chunk.
    pub(super) omitted: u64,
}

impl Generation {
    /// Returns the generations in the order in which they were begun.
    pub(super) async fn all(client: &Client) -> Result<Vec<Self>, Error> {
        let sql = format!("{SELECT} ORDER BY id");
        Ok(client.query(&sql, &[]).await?.iter().map(Self::from_row).collect())
    }

    /// Returns the generation that searches use.
    pub(super) async fn current(client: &Client) -> Result<Option<Self>, Error> {
        let sql = format!("{SELECT} WHERE is_current");
        Ok(client.query_opt(&sql, &[]).await?.as_ref().map(Self::from_row))
    }

    fn from_row(row: &Row) -> Self {
        Self {
            model: StoredModel::from_row(row),
            is_current: row.try_get(4).unwrap_or_default(),
            is_replaced: row.try_get(5).unwrap_or_default(),
            omitted: row.try_get::<_, i64>(6).unwrap_or_default().unsigned_abs(),
        }
    }

    /// Creates an empty generation with its table, in a transaction.
    pub(super) async fn create(client: &Client, model: &str, probe: &[f32]) -> Result<Self, Error> {
        let sql = "INSERT INTO fetchwell.vector_generations (model, dimensions, probe) VALUES ($1, $2, $3)
             RETURNING id, model, dimensions, probe, is_current, is_replaced, omitted";
        let dimensions = saturated::<i32>(probe.len());
        let created = Self::from_row(&client.query_one(sql, &[&model, &dimensions, &probe]).await?);
        use_extension(client).await?;
        let column = created.column().sql(created.model.dimensions);
        let table = CREATE_TABLE.replace("TABLE_NAME", &created.name()).replace("COLUMN_TYPE", &column);
        client.batch_execute(&table).await?;
        Ok(created)
    }

    pub(super) fn id(&self) -> i64 {
        self.model.id
    }

    pub(super) fn column(&self) -> VectorColumn {
        VectorColumn::new(self.model.dimensions)
    }

    fn name(&self) -> String {
        format!("record_vectors_{}", self.id())
    }

    /// Returns the name of the table.
    pub(super) fn table(&self) -> String {
        format!("fetchwell.{}", self.name())
    }

    /// Returns the name of the index.
    pub(super) fn index(&self) -> String {
        format!("{}_nearest", self.name())
    }

    /// Returns the type of the vectors for a cast.
    pub(super) fn cast(&self) -> String {
        self.column().sql(self.model.dimensions)
    }

    /// Returns true if the role may change the table itself.
    pub(super) async fn is_owned(&self, client: &Client) -> Result<bool, Error> {
        let sql = format!("SELECT {}", owns_table("$1"));
        Ok(client.query_one(&sql, &[&self.table()]).await?.get(0))
    }

    /// Returns true if the index exists.
    pub(super) async fn is_indexed(&self, client: &Client) -> Result<bool, Error> {
        let sql = "SELECT to_regclass($1) IS NOT NULL";
        Ok(client.query_one(sql, &[&format!("fetchwell.{}", self.index())]).await?.get(0))
    }

    /// Creates the index, if the dimensions allow one and the role owns the table. Does not block readers.
    pub(super) async fn create_index(&self, database: &mut Object, url: &PostgresUrl) -> Result<(), Error> {
        let Some(operators) = self.column().operators() else { return Ok(()) };
        let transaction = begin_write(database, url).await?;
        let client = transaction.client();
        if self.is_indexed(client).await? || !self.is_owned(client).await? {
            return Ok(());
        }
        use_extension(client).await?;
        client.batch_execute("SET LOCAL maintenance_work_mem = '512MB'").await?;
        let sql = format!(
            "CREATE INDEX {} ON {} USING hnsw (embedding {operators}) WITH (m = 16, ef_construction = 64)",
            self.index(),
            self.table()
        );
        client.batch_execute(&sql).await?;
        transaction.commit().await
    }

    /// Drops the index, if the role owns the table and no reader locks it for two seconds.
    pub(super) async fn drop_index(&self, database: &mut Object, url: &PostgresUrl) -> Result<(), Error> {
        let transaction = begin_write(database, url).await?;
        if !self.is_owned(transaction.client()).await? {
            return Ok(());
        }
        let sql = format!("SET LOCAL lock_timeout = '2s'; DROP INDEX IF EXISTS fetchwell.{}", self.index());
        match transaction.batch_execute(&sql).await {
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => Ok(()),
            Err(error) => Err(error),
            Ok(()) => transaction.commit().await,
        }
    }

    /// Makes this generation the one that searches use.
    pub(super) async fn make_current(
        &mut self,
        database: &mut Object,
        url: &PostgresUrl,
    ) -> Result<(), Error> {
        let transaction = begin_write(database, url).await?;
        let replaced = "UPDATE fetchwell.vector_generations SET is_current = false, is_replaced = true
             WHERE is_current AND id <> $1";
        transaction.execute(replaced, &[&self.id()]).await?;
        let current = "UPDATE fetchwell.vector_generations SET is_current = true WHERE id = $1";
        transaction.execute(current, &[&self.id()]).await?;
        transaction.commit().await?;
        self.is_current = true;
        Ok(())
    }

    /// Drops the table and deletes the generation. Returns false if another role owns the table, or a reader locks it for two
    /// seconds; the next build tries again.
    pub(super) async fn remove(&self, database: &mut Object, url: &PostgresUrl) -> Result<bool, Error> {
        let transaction = begin_write(database, url).await?;
        let exists = "SELECT to_regclass($1) IS NOT NULL";
        let exists: bool = transaction.query_one(exists, &[&self.table()]).await?.get(0);
        if exists && !self.is_owned(transaction.client()).await? {
            return Ok(false);
        }
        // A dropped foreign key also locks the table of words, which searches read.
        let sql = format!("SET LOCAL lock_timeout = '2s'; DROP TABLE IF EXISTS {}", self.table());
        match transaction.batch_execute(&sql).await {
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => return Ok(false),
            dropped => dropped?,
        }
        let sql = "DELETE FROM fetchwell.vector_generations WHERE id = $1";
        transaction.execute(sql, &[&self.id()]).await?;
        transaction.commit().await?;
        Ok(true)
    }
}

/// Removes the generations that are neither current nor being built.
pub(super) async fn remove_replaced(
    database: &mut Object,
    url: &PostgresUrl,
    building: i64,
) -> Result<(), Error> {
    let transaction = begin_write(database, url).await?;
    let all = Generation::all(transaction.client()).await?;
    drop(transaction);
    for replaced in all.iter().filter(|known| !known.is_current && known.id() != building) {
        if !replaced.remove(database, url).await? {
            tracing::debug!(generation = replaced.id(), "replaced vectors are still used");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_decide_the_type_of_the_column() {
        for (dimensions, column, sql) in [
            (2_000, VectorColumn::Full, "vector(2000)"),
            (2_001, VectorColumn::Half, "halfvec(2001)"),
            (4_000, VectorColumn::Half, "halfvec(4000)"),
            (4_001, VectorColumn::Unindexed, "vector(4001)"),
        ] {
            let found = VectorColumn::new(dimensions);
            assert_eq!((found, found.sql(dimensions).as_str()), (column, sql));
            assert_eq!(found.operators().is_none(), column == VectorColumn::Unindexed);
        }
    }
}
