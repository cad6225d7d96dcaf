//! Positions in SQLite. They survive a restart and are shared by the processes of a state directory. Blocks.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};

use super::database::Database;
use super::pending::Use;
use super::rows::{EXPIRES_MS, from_millis, halve, insert, make_room, mark_used, millis, raise, sweep};
use crate::StateError;
use crate::cursor::codec::{Kind, MAX_VALID_FOR, Reference, VALID_FOR};
use crate::cursor::positions::Position;

/// Time within which a process writes the position of a cursor that it has given out, unless its disk is slow.
const MAX_WRITE_DELAY: Duration = Duration::from_millis(100);

/// Time between two looks for a position that another process writes.
const WAIT_STEP: Duration = Duration::from_millis(5);

/// Minimum time between two deletions of expired positions.
const SWEEP_EVERY: Duration = Duration::from_secs(3);

/// Positions of a state directory.
#[derive(Debug)]
pub struct SqlitePositions {
    database: Database,
    swept: Mutex<Instant>,
    /// Lifetime of the cursors of this process. Other processes of the directory may have another lifetime, so each
    /// row has its own expiry.
    valid_for: Duration,
}

/// Position in a list of all positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPosition {
    /// Reference in its cursor.
    pub reference: Reference,
    /// State of the position.
    pub state: PositionState,
    /// Time of expiry, since 1970.
    pub expires: Duration,
    /// The stored position.
    pub position: Position,
}

/// State of a stored position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PositionState {
    /// Its cursor was issued and not used.
    Created,
    /// Its cursor was used.
    Active,
    /// Its cursor has expired; the next sweep deletes it.
    Expired,
}

/// Deletes the positions of a state directory. A directory without any stays as it is.
///
/// # Errors
///
/// The file cannot be written.
pub fn delete_positions(directory: &Path) -> Result<(), StateError> {
    let database = Database::in_directory(directory);
    if !database.is_there() {
        return Ok(());
    }
    SqlitePositions::new(database).delete_all()
}

impl SqlitePositions {
    /// Creates the positions of a file.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database, swept: Mutex::new(Instant::now()), valid_for: VALID_FOR }
    }

    /// Sets the lifetime of cursors.
    #[must_use]
    pub fn with_ttl(self, valid_for: Duration) -> Self {
        Self { valid_for, ..self }
    }

    /// Deletes what has expired at `now`, or at the latest time that was stored, and returns that time.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn start(&self, now: Duration) -> Result<Duration, StateError> {
        self.database.with(|connection| {
            write(connection, |transaction| {
                let seen = raise(transaction, now)?;
                sweep(transaction, seen)?;
                Ok(seen)
            })
        })
    }

    /// Returns the latest time that was stored.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn seen(&self) -> Result<Duration, StateError> {
        self.database.with(|connection| {
            let mut seen = connection.prepare_cached("SELECT seen_ms FROM clock")?;
            seen.query_one((), |row| row.get(0)).map(from_millis)
        })
    }

    /// Returns all positions with their state at `now`, newest first.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn list(&self, now: Duration) -> Result<Vec<StoredPosition>, StateError> {
        self.database.with(|connection| {
            let query = format!("SELECT {COLUMNS} FROM positions ORDER BY issued_ms DESC");
            let mut statement = connection.prepare(&query)?;
            let rows = statement.query_map((), |row| stored(row, now))?;
            rows.filter_map(Result::transpose).collect()
        })
    }

    /// Deletes all positions, and empties the write-ahead log. Their cursors have expired.
    ///
    /// # Errors
    ///
    /// The file cannot be written, or another process reads it.
    pub fn delete_all(&self) -> Result<(), StateError> {
        self.database.with(|connection| {
            connection.execute("DELETE FROM positions", ())?;
            // Deleted rows are overwritten in the file, and the log has them until it is emptied.
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get::<_, bool>(0)).map(drop)
        })
    }

    /// Returns the position of a reference with its state at `now`, without marking it as used.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn get(&self, reference: &Reference, now: Duration) -> Result<Option<StoredPosition>, StateError> {
        self.database.with(|connection| stored_position(connection, reference, now))
    }

    /// Returns the position of a reference as [`Self::get`]. If there is none, waits for another process that has given out its
    /// cursor and writes it in a moment. Blocks.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn wait_for(
        &self,
        reference: &Reference,
        now: Duration,
    ) -> Result<Option<StoredPosition>, StateError> {
        let until = Instant::now() + MAX_WRITE_DELAY;
        loop {
            let found = self.get(reference, now)?;
            if found.is_some() || Instant::now() >= until {
                return Ok(found);
            }
            thread::park_timeout(WAIT_STEP);
        }
    }

    /// Stores positions, whose texts are encrypted, and first uses in one transaction. Evicts the oldest if the file has no
    /// room for them. Returns the stored clock.
    pub(super) fn write(
        &self,
        positions: &[(Reference, Position)],
        uses: &[Use],
    ) -> Result<Duration, StateError> {
        let is_due = self.is_due();
        let bytes = positions.iter().map(|(_, position)| position.text.len()).sum();
        let times =
            positions.iter().map(|(_, position)| position.issued).chain(uses.iter().map(|used| used.at));
        let latest = times.max().unwrap_or_default();
        let write_all = |transaction: &Transaction<'_>| {
            let seen = raise(transaction, latest)?;
            if is_due {
                sweep(transaction, seen)?;
            }
            make_room(transaction, bytes)?;
            for (reference, position) in positions {
                insert(transaction, reference, position, position.issued + self.valid_for)?;
            }
            for first_use in uses {
                mark_used(transaction, *first_use)?;
            }
            Ok(seen)
        };
        let written = self.database.with(|connection| write(connection, write_all));
        let Err(StateError::Full { .. }) = written else { return written };
        // The file has its maximum size, or the disk is full: the older half is deleted.
        self.database.with(|connection| write(connection, halve))?;
        self.database.with(|connection| write(connection, write_all))
    }

    /// Stores that the time is at least `now`, and deletes positions that have expired.
    pub(super) fn expire(&self, now: Duration) -> Result<(), StateError> {
        // Nothing is written if all of that is known already.
        let is_known = self.database.with(|connection| {
            let known = format!("SELECT seen_ms >= ?1 AND NOT EXISTS (SELECT 1 FROM positions WHERE {EXPIRES_MS} < ?2) FROM clock");
            connection.prepare_cached(&known)?.query_one(
                params![millis(now).saturating_sub(EXPIRE_EVERY_MS), millis(now)],
                |row| row.get::<_, bool>(0),
            )
        })?;
        if is_known {
            return Ok(());
        }
        self.start(now).map(|_seen| ())
    }

    /// Returns true if a sweep is due.
    fn is_due(&self) -> bool {
        let mut swept = self.swept.lock();
        let due = swept.elapsed() >= SWEEP_EVERY;
        if due {
            *swept = Instant::now();
        }
        due
    }
}

/// Time by which the stored time may be behind before a refused cursor updates it.
const EXPIRE_EVERY_MS: i64 = 1_000;

const COLUMNS: &str = "reference, kind, issued_ms, offset, used_ms, binding, position, expires_ms";

fn write<Answer>(
    connection: &mut Connection,
    call: impl FnOnce(&Transaction<'_>) -> Result<Answer, rusqlite::Error>,
) -> Result<Answer, rusqlite::Error> {
    // Immediate: a transaction that begins with a read could fail to become a writer.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let answer = call(&transaction)?;
    transaction.commit()?;
    Ok(answer)
}

fn stored_position(
    connection: &Connection,
    reference: &Reference,
    now: Duration,
) -> Result<Option<StoredPosition>, rusqlite::Error> {
    let query = format!("SELECT {COLUMNS} FROM positions WHERE reference = ?1");
    let found =
        connection.prepare_cached(&query)?.query_one([reference], |row| stored(row, now)).optional()?;
    Ok(found.flatten())
}

/// Reads a row. Returns `None` for a kind that only a newer release knows.
fn stored(row: &Row<'_>, now: Duration) -> Result<Option<StoredPosition>, rusqlite::Error> {
    let Some(kind) = Kind::of_byte(row.get("kind")?) else { return Ok(None) };
    let issued = from_millis(row.get("issued_ms")?);
    let expires: Option<i64> = row.get("expires_ms")?;
    let expires = expires.map_or(issued + MAX_VALID_FOR, from_millis);
    let used: Option<i64> = row.get("used_ms")?;
    let state = match used {
        _ if now > expires => PositionState::Expired,
        Some(_) => PositionState::Active,
        None => PositionState::Created,
    };
    let (offset, binding, text) = (row.get("offset")?, row.get("binding")?, row.get("position")?);
    let position = Position { kind, issued, offset, binding, text };
    Ok(Some(StoredPosition { reference: row.get("reference")?, state, expires, position }))
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    const NOW: Duration = Duration::from_secs(1_795_000_000);

    fn position(issued: Duration, bytes: usize) -> Position {
        let text = "x".repeat(bytes);
        Position { kind: Kind::Records, issued, offset: 7, binding: "b".to_owned(), text }
    }

    fn open(folder: &tempfile::TempDir, max_pages: i64) -> Result<SqlitePositions, StateError> {
        let mut database = Database::in_directory(folder.path());
        database.file.max_bytes = max_pages * 4_096;
        database.prepare()?;
        Ok(SqlitePositions::new(database))
    }

    /// Returns the position of a reference if it has not expired.
    fn found(positions: &SqlitePositions, reference: Reference, now: Duration) -> Option<Position> {
        let found = positions.get(&reference, now).unwrap();
        found.filter(|found| found.state != PositionState::Expired).map(|found| found.position)
    }

    fn states(positions: &SqlitePositions, now: Duration) -> Vec<(u8, PositionState)> {
        positions.list(now).unwrap().iter().map(|kept| (kept.reference[0], kept.state)).collect()
    }

    #[test]
    fn a_position_is_created_then_active_then_gone() {
        let folder = tempfile::tempdir().unwrap();
        let positions = open(&folder, 1_000).unwrap();
        let at = |seconds| NOW + Duration::from_secs(seconds);
        positions.write(&[([1; 16], position(at(0), 10))], &[]).unwrap();
        positions.write(&[([2; 16], position(at(1), 10))], &[]).unwrap();
        assert_eq!(found(&positions, [1; 16], at(2)), Some(position(at(0), 10)));
        positions.write(&[], &[Use { reference: [1; 16], at: at(2) }]).unwrap();
        assert_eq!(states(&positions, at(2)), [(2, PositionState::Created), (1, PositionState::Active)]);
        assert_eq!(states(&positions, at(601)), [(2, PositionState::Created), (1, PositionState::Expired)]);
        // A lookup changes nothing, and does not return expired positions.
        assert_eq!(positions.get(&[2; 16], at(2)).unwrap().unwrap().state, PositionState::Created);
        assert_eq!(found(&positions, [1; 16], at(601)), None);
        positions.expire(at(601)).unwrap();
        assert_eq!(states(&positions, at(2)), [(2, PositionState::Created)]);
        assert_eq!(positions.start(at(0)).unwrap(), at(601));
        assert_eq!(positions.start(at(700)).unwrap(), at(700));
        assert_eq!(states(&positions, at(2)), []);
    }

    #[test]
    fn position_expires_by_the_lifetime_of_its_writer() {
        let folder = tempfile::tempdir().unwrap();
        let long = open(&folder, 1_000).unwrap().with_ttl(Duration::from_secs(3_600));
        let short = open(&folder, 1_000).unwrap().with_ttl(Duration::from_secs(60));
        let at = |seconds| NOW + Duration::from_secs(seconds);
        long.write(&[([1; 16], position(at(0), 10))], &[]).unwrap();
        short.write(&[([2; 16], position(at(0), 10))], &[]).unwrap();
        assert_eq!(found(&long, [2; 16], at(61)), None);
        // A process with the shorter lifetime sweeps: at its start, and when it refuses a cursor.
        short.start(at(1_800)).unwrap();
        short.expire(at(1_801)).unwrap();
        assert_eq!(states(&short, at(1_801)), [(1, PositionState::Created)]);
        assert!(found(&long, [1; 16], at(3_600)).is_some());
        assert_eq!(found(&long, [1; 16], at(3_601)), None);
        short.expire(at(3_602)).unwrap();
        assert_eq!(states(&long, at(0)), []);
    }

    #[test]
    fn file_of_the_first_format_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let former = Connection::open(folder.path().join("cursors.db")).unwrap();
        former
            .execute_batch(
                "PRAGMA journal_mode = WAL;
                 CREATE TABLE positions (reference BLOB PRIMARY KEY, kind INTEGER NOT NULL, issued_ms INTEGER NOT NULL,
                     offset INTEGER NOT NULL, used_ms INTEGER, binding TEXT NOT NULL, position TEXT NOT NULL) STRICT;
                 CREATE INDEX positions_by_issue ON positions (issued_ms, length(position));
                 CREATE TABLE clock (id INTEGER PRIMARY KEY CHECK (id = 1), seen_ms INTEGER NOT NULL) STRICT;
                 INSERT INTO clock (id, seen_ms) VALUES (1, 0);
                 PRAGMA user_version = 1; PRAGMA application_id = 1719100277;",
            )
            .unwrap();
        let row = "INSERT INTO positions (reference, kind, issued_ms, offset, binding, position) VALUES (?, ?, ?, 7, 'b', 'x')";
        former.execute(row, params![[1_u8; 16], Kind::Records.byte(), millis(NOW)]).unwrap();
        let positions = open(&folder, 1_000).unwrap();
        let at = |seconds| NOW + Duration::from_secs(seconds);
        assert_eq!(positions.start(at(601)).unwrap(), at(601));
        assert_eq!(found(&positions, [1; 16], at(3_600)), Some(position(NOW, 1)));
        // A running process of the earlier release writes rows as before.
        former.execute(row, params![[2_u8; 16], Kind::Records.byte(), millis(NOW)]).unwrap();
        assert!(found(&positions, [2; 16], at(3_600)).is_some());
        positions.expire(at(3_601)).unwrap();
        assert_eq!(states(&positions, NOW), []);
    }

    #[test]
    fn when_the_file_is_full_the_newest_lives() {
        let folder = tempfile::tempdir().unwrap();
        let positions = open(&folder, 200).unwrap();
        for number in 0..100 {
            positions.write(&[([number; 16], position(NOW, 20_000))], &[]).unwrap();
            assert!(found(&positions, [number; 16], NOW).is_some(), "{number}");
        }
        assert!(found(&positions, [0; 16], NOW).is_none());
        assert!(std::fs::metadata(folder.path().join("cursors.db")).unwrap().len() <= 200 * 4_096);
        let too_large = positions.write(&[([200; 16], position(NOW, 2_000_000))], &[]).unwrap_err();
        assert!(too_large.to_string().contains("is full"), "{too_large}");
    }

    #[test]
    fn what_is_deleted_is_not_left_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let positions = open(&folder, 1_000).unwrap();
        let secret = Position { text: "a private question".to_owned(), ..position(NOW, 0) };
        positions.write(&[([1; 16], secret)], &[]).unwrap();
        let holds = || {
            let file = std::fs::read(folder.path().join("cursors.db")).unwrap();
            file.windows(18).any(|window| window == b"a private question")
        };
        let checkpoint = || {
            let truncate = "PRAGMA wal_checkpoint(TRUNCATE)";
            positions.database.with(|connection| connection.query_one(truncate, (), |_| Ok(()))).unwrap();
        };
        checkpoint();
        assert!(holds());
        positions.expire(NOW + VALID_FOR * 2).unwrap();
        checkpoint();
        assert!(!holds());
    }

    #[test]
    fn many_that_start_at_once_make_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let start = std::sync::Barrier::new(8);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    let positions = open(&folder, 1_000).unwrap();
                    assert_eq!(positions.start(NOW).unwrap(), NOW);
                });
            }
        });
    }

    #[test]
    fn a_file_that_cannot_be_used_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let positions = open(&folder, 1_000).unwrap();
        let path = folder.path().join("cursors.db");
        let other = Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let locked = positions.write(&[([1; 16], position(NOW, 1))], &[]).unwrap_err();
        assert!(matches!(locked, StateError::Locked { .. }) && locked.to_string().contains("cursors.db"));
        other.execute_batch("COMMIT; PRAGMA user_version = 4").unwrap();
        assert!(matches!(open(&folder, 1_000).unwrap_err(), StateError::OtherFormat { found: 4, .. }));
        other.execute_batch("PRAGMA application_id = 7").unwrap();
        assert!(matches!(open(&folder, 1_000).unwrap_err(), StateError::Foreign { .. }));
        drop(other);
        // The file is deleted while a process uses it; it is created again.
        std::fs::remove_dir_all(folder.path()).unwrap();
        positions.write(&[([1; 16], position(NOW, 1))], &[]).unwrap();
        assert!(found(&positions, [1; 16], NOW).is_some() && path.exists());
        std::fs::remove_dir_all(folder.path()).unwrap();
        std::fs::write(folder.path(), "a file").unwrap();
        let missing = positions.write(&[([1; 16], position(NOW, 1))], &[]).unwrap_err();
        assert!(missing.to_string().contains("--state-dir"), "{missing}");
        std::fs::remove_file(folder.path()).unwrap();
        std::fs::create_dir(folder.path()).unwrap();
        std::fs::write(&path, "no database, and longer than the header of one would be: a hundred bytes in all, or so it is said").unwrap();
        assert!(matches!(open(&folder, 1_000).unwrap_err(), StateError::Foreign { .. }));
    }

    #[test]
    fn a_damaged_file_is_replaced_once_by_all_processes() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (open(&folder, 1_000).unwrap(), open(&folder, 1_000).unwrap());
        for positions in [&one, &other] {
            positions.write(&[([1; 16], position(NOW, 20_000))], &[]).unwrap();
        }
        let truncate = "PRAGMA wal_checkpoint(TRUNCATE)";
        one.database.with(|connection| connection.query_one(truncate, (), |_| Ok(()))).unwrap();
        // A power failure: the header is on the disk, and other pages are not.
        let path = folder.path().join("cursors.db");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[4_096..].fill(0);
        std::fs::write(&path, bytes).unwrap();
        let third = open(&folder, 1_000).unwrap();
        assert_eq!(third.start(NOW).unwrap(), NOW);
        for (number, positions) in [(2, &third), (3, &one), (4, &other)] {
            positions.write(&[([number; 16], position(NOW, 1))], &[]).unwrap();
        }
        assert_eq!(states(&third, NOW).len(), 3);
    }
}
