//! Resolves the names of a scope to rows.

use deadpool_postgres::Transaction;
use tokio_postgres::Error;

use crate::handle::RecordScope;
use crate::source::contract::ScopeError;

/// Rows that a scope names.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) connection: i64,
    /// Streams in the order in which they were created.
    pub(super) streams: Vec<StreamPlace>,
    /// Record of the only stream, if the scope names one.
    pub(super) record: Option<RecordPlace>,
}

/// Row of a stream.
#[derive(Debug, Clone)]
pub(super) struct StreamPlace {
    pub(super) row: i64,
    pub(super) name: String,
    pub(super) records: u64,
}

/// Record of a scope.
#[derive(Debug, Clone)]
pub(super) struct RecordPlace {
    pub(super) key: String,
    /// True if only the history of a deleted record is left.
    pub(super) is_deleted: bool,
}

/// Resolves a scope.
pub(super) async fn resolve(
    transaction: &Transaction<'_>,
    scope: &RecordScope,
) -> Result<Result<Place, ScopeError>, Error> {
    let asked = scope.connection.as_str();
    let sql = "SELECT id FROM fetchwell.connections WHERE connection_id = $1";
    let Some(found) = transaction.query_opt(sql, &[&asked]).await? else {
        let sql = "SELECT connection_id FROM fetchwell.connections ORDER BY id";
        let known = transaction.query(sql, &[]).await?.iter().map(|row| row.get(0)).collect();
        return Ok(Err(ScopeError::ConnectionNotFound { asked: asked.to_owned(), known }));
    };
    let connection: i64 = found.get(0);
    let sql = "SELECT id, name, record_count FROM fetchwell.streams WHERE connection = $1 ORDER BY id";
    let streams = transaction.query(sql, &[&connection]).await?;
    let streams = streams.iter().map(|row| StreamPlace {
        row: row.get(0),
        name: row.get(1),
        records: row.get::<_, i64>(2).try_into().unwrap_or(0),
    });
    let mut streams: Vec<StreamPlace> = streams.collect();
    let Some(stream) = &scope.stream else { return Ok(Ok(Place { connection, streams, record: None })) };
    if !streams.iter().any(|known| known.name == stream.as_str()) {
        return Ok(Err(ScopeError::StreamNotFound {
            connection: asked.to_owned(),
            asked: stream.to_string(),
            known: streams.into_iter().map(|stream| stream.name).collect(),
        }));
    }
    streams.retain(|known| known.name == stream.as_str());
    let (Some(key), Some(stream)) = (&scope.record, streams.first()) else {
        return Ok(Ok(Place { connection, streams, record: None }));
    };
    let sql = "SELECT data IS NULL FROM fetchwell.records WHERE stream = $1 AND key = $2";
    let Some(record) = transaction.query_opt(sql, &[&stream.row, &key.as_str()]).await? else {
        return Ok(Err(ScopeError::RecordNotFound(scope.to_string())));
    };
    let record = RecordPlace { key: key.as_str().to_owned(), is_deleted: record.get(0) };
    Ok(Ok(Place { connection, streams, record: Some(record) }))
}
