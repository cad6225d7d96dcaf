//! `fetchwell cursor`: inspects and lists cursors, and rotates the signing key.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use fetchwell_core::hex::hexadecimal;
use fetchwell_core::record::RecordData;
use fetchwell_state::StateError;
use fetchwell_state::cursor::{
    Clock, CursorFault, Database, KeyFile, KeyId, KeyRing, PositionState, Skew, SqlitePositions,
    StoredPosition, UnverifiedCursor, open_position,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::print::Printer;
use crate::app::failure::Failure;
use crate::app::state::ServerStateArgs;

/// Inspect cursors of servers, and rotate the key that signs them.
#[derive(Debug, Args)]
pub(super) struct Cursor {
    #[command(subcommand)]
    command: Command,

    #[command(flatten)]
    state: ServerStateArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the content of a cursor, whether its signature is valid, and what it continues.
    Inspect {
        /// The cursor.
        token: String,
    },
    /// List the cursors with a stored position.
    List,
    /// Sign new cursors with a new key. Existing cursors stay valid until they expire.
    Rotate,
}

/// Contents of a state directory. Reading it creates nothing.
struct State {
    directory: PathBuf,
    positions: Option<SqlitePositions>,
    now: Duration,
    /// Lifetime of cursors.
    valid_for: Duration,
}

/// Output of `inspect`. `order_by`, `filters` and `limit` are repeated from the arguments.
#[derive(Debug, Serialize)]
struct Inspection {
    kind: &'static str,
    offset: u32,
    timestamp: f64,
    age_seconds: f64,
    expires_at: f64,
    expires_in_seconds: f64,
    key_id: String,
    signature: Signature,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    reference: String,
    #[serde(flatten)]
    kept: Option<Position>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Signature {
    Valid,
    Invalid,
    UnknownKey,
}

/// Position that is kept for a cursor.
#[derive(Debug, Serialize)]
struct Position {
    state: PositionState,
    tool: &'static str,
    arguments: Value,
    order_by: Value,
    filters: Value,
    limit: Value,
    binding: String,
    bytes: usize,
}

/// Row of the list.
#[derive(Debug, Serialize)]
struct CursorRow {
    state: PositionState,
    kind: &'static str,
    offset: u32,
    timestamp: f64,
    expires_in_seconds: f64,
    bytes: usize,
    reference: String,
}

impl Cursor {
    pub(super) fn run(self, printer: Printer, skew: Skew) -> Result<(), Failure> {
        let (directory, valid_for) = self.state.directory_and_ttl()?;
        let state = State::open(directory, skew, valid_for)?;
        match self.command {
            Command::Inspect { token } => state.inspect(printer, token.trim()),
            Command::List => state.list(printer),
            Command::Rotate => state.rotate(printer),
        }
    }
}

impl State {
    fn open(directory: PathBuf, skew: Skew, valid_for: Duration) -> Result<Self, StateError> {
        let database = Database::in_directory(&directory);
        let is_there = database.is_there();
        if is_there {
            database.prepare()?;
        }
        let positions = is_there.then(|| SqlitePositions::new(database).with_ttl(valid_for));
        let clock = Clock::new(skew);
        if let Some(positions) = &positions {
            clock.raise(positions.seen()?);
        }
        Ok(Self { directory, positions, now: clock.now(), valid_for })
    }

    fn inspect(&self, printer: Printer, token: &str) -> Result<(), Failure> {
        let sealed = UnverifiedCursor::read(token)?;
        let claims = sealed.unverified();
        let signature = self.signature(&sealed)?;
        let kept = match &self.positions {
            // The position of a forged cursor is not shown, because it can belong to another caller.
            Some(positions) if signature == Signature::Valid => {
                positions.wait_for(&claims.reference, self.now)?
            }
            _ => None,
        };
        // By the lifetime of the server that issued it.
        let expires = kept.as_ref().map_or(claims.expires(self.valid_for), |kept| kept.expires);
        let valid_for = expires.saturating_sub(claims.issued);
        let fault = match signature {
            Signature::Valid if kept.is_some() => claims.check_time(self.now, valid_for).err(),
            Signature::Valid | Signature::UnknownKey => Some(CursorFault::Expired),
            Signature::Invalid => Some(CursorFault::Tampered),
        };
        let inspected = Inspection {
            kind: claims.kind.tool(),
            offset: claims.offset,
            timestamp: claims.issued.as_secs_f64(),
            age_seconds: difference(self.now, claims.issued),
            expires_at: expires.as_secs_f64(),
            expires_in_seconds: difference(expires, self.now),
            key_id: sealed.key().to_string(),
            signature,
            reason: fault.map(CursorFault::reason),
            reference: hexadecimal(&claims.reference),
            kept: kept.map(|kept| self.position(kept)).transpose()?,
        };
        print(printer, &inspected);
        Ok(())
    }

    fn keys(&self) -> Result<Option<KeyRing>, StateError> {
        let loaded = KeyFile::in_directory(&self.directory).load()?;
        Ok(loaded.map(|loaded| loaded.ring.with_ttl(self.valid_for)))
    }

    /// Decrypts a kept position.
    fn position(&self, kept: StoredPosition) -> Result<Position, StateError> {
        let ring = self.keys()?;
        let key = |id| ring.as_ref().and_then(|ring| ring.key(id, self.now)).cloned();
        let text = open_position(key, &kept.reference, &kept.position.text).unwrap_or_default();
        Ok(Position::new(kept, &text))
    }

    fn signature(&self, sealed: &UnverifiedCursor) -> Result<Signature, StateError> {
        let ring = self.keys()?;
        let key = ring.as_ref().and_then(|ring| ring.key(sealed.key(), self.now));
        Ok(match key.map(|key| sealed.verified(key)) {
            None => Signature::UnknownKey,
            Some(Ok(_)) => Signature::Valid,
            Some(Err(_)) => Signature::Invalid,
        })
    }

    fn list(&self, printer: Printer) -> Result<(), Failure> {
        let kept = self.positions.as_ref().map(|positions| positions.list(self.now)).transpose()?;
        let rows: Vec<CursorRow> =
            kept.unwrap_or_default().into_iter().map(|kept| CursorRow::new(kept, self)).collect();
        if printer.json {
            printer.value(&rows);
            return Ok(());
        }
        let mut table =
            vec![["state", "kind", "offset", "expires in", "bytes", "reference"].map(str::to_owned).to_vec()];
        table.extend(rows.into_iter().map(|row| {
            let state = json!(row.state).as_str().unwrap_or_default().to_owned();
            let seconds = format!("{:.0} s", row.expires_in_seconds);
            vec![
                state,
                row.kind.to_owned(),
                row.offset.to_string(),
                seconds,
                row.bytes.to_string(),
                row.reference,
            ]
        }));
        printer.table(&table);
        Ok(())
    }

    fn rotate(&self, printer: Printer) -> Result<(), Failure> {
        // Creates the directory if there is none: the first server will sign with this key.
        if self.positions.is_none() {
            Database::in_directory(&self.directory).prepare()?;
        }
        let loaded = KeyFile::in_directory(&self.directory).rotate(self.now)?;
        let id: KeyId = loaded.ring.newest().id();
        if printer.json {
            printer.value(&json!({"key_id": id.to_string(), "keys": loaded.count}));
        } else {
            printer.line(format_args!("new cursors are signed with key {id}; {} keys verify", loaded.count));
        }
        Ok(())
    }
}

impl Position {
    fn new(kept: StoredPosition, text: &str) -> Self {
        let text: RecordData = serde_json::from_str(text).unwrap_or_default();
        let arguments = text.get("arguments").cloned().unwrap_or_default();
        let argument = |name: &str| arguments.get(name).cloned().unwrap_or_default();
        // A path of `/api/v1` names field and direction in one argument.
        let order_by = [argument("order_by"), argument("sort"), argument("order")]
            .into_iter()
            .find(|sent| !sent.is_null());
        Self {
            state: kept.state,
            tool: kept.position.kind.tool(),
            order_by: order_by.unwrap_or_default(),
            filters: argument("filter"),
            limit: argument("limit"),
            binding: kept.position.binding,
            bytes: kept.position.text.len(),
            arguments,
        }
    }
}

impl CursorRow {
    fn new(kept: StoredPosition, state: &State) -> Self {
        let position = kept.position;
        Self {
            state: kept.state,
            kind: position.kind.tool(),
            offset: position.offset,
            timestamp: position.issued.as_secs_f64(),
            expires_in_seconds: difference(kept.expires, state.now),
            bytes: position.text.len(),
            reference: hexadecimal(&kept.reference),
        }
    }
}

/// Prints JSON, or one field per line.
fn print(printer: Printer, inspected: &Inspection) {
    if printer.json {
        printer.value(inspected);
        return;
    }
    for (name, value) in json!(inspected).as_object().into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        printer.line(format_args!("{name:<20}{}", value));
    }
}

/// Returns the seconds from one time to a later one; negative if it is earlier.
fn difference(later: Duration, earlier: Duration) -> f64 {
    later.as_secs_f64() - earlier.as_secs_f64()
}
