//! Indexes and statistics around an import to its end, which can be the first one of many records.

use deadpool_postgres::Object;
use fetchwell_source::contract::{StoreError, Tally};
use tokio_postgres::error::SqlState;

use super::waiter::Waiter;
use crate::administration::{Job, Lease, LeaseAttempt};
use crate::bulk::indexes::{build_missing_indexes, drop_indexes_of_empty_tables, is_index_missing};

/// Number of records after which the server gets new statistics.
const MANY_RECORDS: u64 = 1_000;

/// Statement after merges of the numbers of words, which leave empty space.
const FREE_MERGED_ROWS: &str = "VACUUM fetchwell.term_runs, fetchwell.term_blocks";

/// Statements after an import of many records. New words are in a list until they are sorted into the index.
const AFTER_MANY_RECORDS: [&str; 2] = [
    "SELECT gin_clean_pending_list('fetchwell.texts_by_word');
     ANALYZE fetchwell.records, fetchwell.texts, fetchwell.term_runs, fetchwell.term_blocks",
    FREE_MERGED_ROWS,
];

/// Indexes around one import.
#[derive(Debug, Default)]
pub(super) struct BulkImport {
    /// True after the first full batch.
    is_begun: bool,
    /// Right to build the indexes at the end, if the tables were empty.
    lease: Option<Lease>,
}

impl BulkImport {
    /// Drops the indexes before the first full batch if the tables are empty: building them at the end takes less time.
    pub(super) fn begin(&mut self, waiter: &Waiter, database: &mut Object) -> Result<(), StoreError> {
        if std::mem::replace(&mut self.is_begun, true) {
            return Ok(());
        }
        let pool = waiter.pool();
        self.lease = waiter.wait(async {
            let LeaseAttempt::Taken(lease) = Lease::try_take(pool, Job::BuildIndexes).await? else {
                return Ok(None);
            };
            match drop_indexes_of_empty_tables(database, pool.url()).await {
                Ok(is_dropped) => Ok(is_dropped.then_some(lease)),
                // A reader uses the tables.
                Err(error)
                    if matches!(
                        error.code(),
                        Some(&(SqlState::LOCK_NOT_AVAILABLE | SqlState::T_R_DEADLOCK_DETECTED))
                    ) =>
                {
                    Ok(None)
                }
                Err(error) => Err(pool.failure(&error)),
            }
        })?;
        Ok(())
    }

    /// Builds indexes that are missing after a large import, this one or an interrupted one.
    pub(super) fn build_indexes(&mut self, waiter: &Waiter, database: &mut Object) -> Result<(), StoreError> {
        let pool = waiter.pool();
        waiter.wait_long(async {
            let is_missing = is_index_missing(database, pool.url()).await;
            if !is_missing.map_err(|error| pool.failure(&error))? {
                return Ok(());
            }
            let lease = match self.lease.take() {
                Some(lease) => LeaseAttempt::Taken(lease),
                None => Lease::try_take(pool, Job::BuildIndexes).await?,
            };
            // The import that has the lease builds them.
            if let LeaseAttempt::Taken(_lease) = lease {
                build_missing_indexes(database, pool.url()).await.map_err(|error| pool.failure(&error))?;
            }
            Ok(())
        })
    }

    /// Frees the space of merged runs for the next ones. Only the owner of the tables may do this.
    pub(super) fn free_merged_rows(waiter: &Waiter, database: &Object) {
        let _refused = waiter.wait(async {
            database.batch_execute(FREE_MERGED_ROWS).await.map_err(|error| waiter.pool().failure(&error))
        });
    }

    /// Updates the statistics of the server after many records. Only the owner of the tables may do this. The server does it by
    /// itself, too, but later.
    pub(super) fn update_statistics(waiter: &Waiter, database: &Object, tally: Tally) {
        if tally.added + tally.changed < MANY_RECORDS {
            return;
        }
        for statement in AFTER_MANY_RECORDS {
            let _refused = waiter.wait(async {
                database.batch_execute(statement).await.map_err(|error| waiter.pool().failure(&error))
            });
        }
    }
}
