//! Change feed of a stream: records that were added, changed or deleted since a token was issued.
//!
//! Tokens are encrypted, because the version in them counts changes of all streams of the store.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use fetchwell_core::handle::RecordAddress;
use fetchwell_core::record::{Record, RecordData};
use fetchwell_source::{Change, ChangesToken, QueryFault, RecordsPage, RecordsQuery, SourceError};
use fetchwell_state::cursor::decrypt;
use sha2::{Digest, Sha256};

use super::field_reader::{FieldReader, FieldValues};
use super::interrupt::ReadBounds;
use super::predicate::{Predicate, check};
use super::projection::Projection;
use super::stream_row::StreamRow;
use super::streams::stream_rows;
use super::tables::{ChangeRow, MAX_PAGE_BYTES, StoreIdentity, Tables};

/// Returns the changes after `since`, in the order in which they were made. A record that changed several times
/// appears once, in its current state.
pub fn changes<T: Tables>(
    tables: &T,
    query: &RecordsQuery,
    since: Option<&ChangesToken>,
    bounds: ReadBounds<'_>,
) -> Result<RecordsPage, T::Error> {
    if query.words.is_some() {
        return Err(words_beside_changes().into());
    }
    let streams = stream_rows(tables, &query.stream, query.connection.as_ref())?;
    let [stream] = streams.as_slice() else { return Err(one_connection(&streams).into()) };
    check(&query.filter, &[&stream.detail])?;
    let projection = Projection::new(&query.selection, &streams)?;
    let StoreIdentity { uuid, version: newest } = tables.identity()?;
    let since = since.map(|token| read_token(token, &uuid, newest)).transpose()?;
    let mut read = ChangesRead::new(query, stream, since.unwrap_or(0));
    tables.changes(stream.row, read.since, bounds, &mut |row| Ok(read.add(row, bounds)))?;
    let ChangesRead { mut rows, reached, has_more, .. } = read;
    for change in &mut rows {
        if let Change::Present(record) = change {
            projection.apply(record);
        }
    }
    // `newest` was read before the rows, so the stream has no changes left up to that version.
    let version = if has_more { reached } else { newest.max(reached) };
    let next_changes = Some(write_token(&uuid, version));
    Ok(RecordsPage { rows, has_more, next_changes, ..RecordsPage::default() })
}

fn words_beside_changes() -> SourceError {
    SourceError::InvalidQuery {
        fault: QueryFault::InvalidArgument,
        problem: "changes come in their own order, each once, whatever words they have".to_owned(),
        hint: "List the changes without words.".to_owned(),
    }
}

/// Page of changes that is being read.
struct ChangesRead<'a> {
    query: &'a RecordsQuery,
    stream: &'a StreamRow,
    reader: FieldReader,
    predicate: Predicate,
    picked: FieldValues,
    since: i64,
    rows: Vec<Change>,
    bytes: usize,
    /// Version of the last change of the page.
    reached: i64,
    has_more: bool,
}

impl<'a> ChangesRead<'a> {
    fn new(query: &'a RecordsQuery, stream: &'a StreamRow, since: i64) -> Self {
        let mut reader = FieldReader::default();
        let predicate = Predicate::new(&query.filter, &mut reader);
        let (picked, rows) = (Vec::new(), Vec::new());
        let (reached, has_more) = (since, false);
        Self { query, stream, reader, predicate, picked, since, rows, bytes: 0, reached, has_more }
    }

    /// Adds a change that passes the filter. Returns false if the page is complete.
    fn add(&mut self, row: ChangeRow<'_>, bounds: ReadBounds<'_>) -> bool {
        if let Some(data) = row.data {
            self.reader.read(data, &mut self.picked);
            if !self.predicate.passes(&self.picked) {
                return true;
            }
        } else if self.since == 0 {
            // A client that starts from the beginning holds nothing that was deleted.
            return true;
        }
        // A page of large records is shorter than the limit.
        if self.rows.len() == self.query.limit || self.bytes > MAX_PAGE_BYTES {
            self.has_more = true;
            return false;
        }
        let bytes = row.data.map_or(0, str::len);
        // The read exceeded its memory limit, so its result is discarded.
        if !bounds.allowance.take(bytes) {
            return false;
        }
        self.bytes += bytes;
        self.rows.extend(change_of(row, self.stream));
        self.reached = row.version;
        true
    }
}

/// Builds a change. Returns `None` for a record that another program damaged.
fn change_of(row: ChangeRow<'_>, stream: &StreamRow) -> Option<Change> {
    let address = RecordAddress {
        connection: Some(stream.detail.connection_id.clone()),
        stream: stream.detail.name.clone(),
        record: row.key.parse().ok()?,
    };
    let emitted_at = row.emitted_at.map(str::to_owned);
    let Some(data) = row.data else { return Some(Change::Deleted { address, deleted_at: emitted_at }) };
    Some(Change::Present(Box::new(Record {
        emitted_at,
        display_name: stream.detail.display_name.clone(),
        connector_key: stream.detail.connector_key.clone(),
        ..Record::new(address, serde_json::from_str::<RecordData>(data).ok()?)
    })))
}

/// Length in bytes of the digest of the store's id at the start of a token.
const STORE_BYTES: usize = 8;

/// Returns the token of a version. The version counts the changes of all streams, and the holder of a token may not be
/// allowed to know of all of them: a token leaves the process sealed, and all tokens have the same length.
fn write_token(uuid: &str, version: i64) -> ChangesToken {
    ChangesToken::Verified([store_bytes(uuid), version.to_be_bytes()].concat())
}

fn store_bytes(uuid: &str) -> [u8; STORE_BYTES] {
    let digest = Sha256::new().chain_update("store of changes ").chain_update(uuid).finalize();
    std::array::from_fn(|at| digest.get(at).copied().unwrap_or_default())
}

/// Returns the key of tokens of earlier versions.
fn secret(uuid: &str) -> [u8; 32] {
    Sha256::new().chain_update("key of changes ").chain_update(uuid).finalize().into()
}

/// Returns the version of a token. Earlier versions gave tokens that they encrypted themselves, with a key made of the random id of
/// the store.
fn read_token(token: &ChangesToken, uuid: &str, newest: i64) -> Result<i64, SourceError> {
    let refused = |fault, problem: &str| SourceError::InvalidQuery {
        fault,
        problem: problem.to_owned(),
        hint: "Start again with `changes_since` set to \"beginning\", and discard earlier results."
            .to_owned(),
    };
    let malformed =
        || refused(QueryFault::MalformedCursor, "the token of `changes_since` is not one of this store");
    let replaced = || refused(QueryFault::ExpiredCursor, "the store was replaced since that token was given");
    let within = |version: i64| if version > newest { Err(replaced()) } else { Ok(version) };
    let text = match token {
        ChangesToken::Verified(state) => {
            let (store, version) = state.split_first_chunk::<STORE_BYTES>().ok_or_else(malformed)?;
            let version = version.try_into().map(i64::from_be_bytes).map_err(|_length| malformed())?;
            return if *store == store_bytes(uuid) { within(version) } else { Err(replaced()) };
        }
        ChangesToken::Unverified(text) => text,
    };
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).unwrap_or_default();
    if bytes.starts_with(b"{") {
        // Earlier releases issued tokens of readable JSON.
        return Err(refused(QueryFault::ExpiredCursor, "that token is of a former version of fetchwell"));
    }
    let (store, sealed) = bytes.split_first_chunk::<STORE_BYTES>().ok_or_else(malformed)?;
    if *store != store_bytes(uuid) {
        return Err(if sealed.len() == SEALED_BYTES { replaced() } else { malformed() });
    }
    let version = decrypt(&secret(uuid), store, sealed).ok_or_else(malformed)?;
    let version = version.try_into().map(i64::from_be_bytes).map_err(|_length| malformed())?;
    within(version)
}

/// Length in bytes of an encrypted version: nonce, version and authentication tag.
const SEALED_BYTES: usize = 12 + 8 + 16;

fn one_connection(streams: &[StreamRow]) -> SourceError {
    let ids: Vec<&str> = streams.iter().map(|stream| stream.detail.connection_id.as_str()).take(12).collect();
    SourceError::InvalidQuery {
        fault: QueryFault::InvalidArgument,
        problem: "changes are of one connection, and several have this stream".to_owned(),
        hint: format!("Set `connection_id` to one of: {}.", ids.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fetchwell_state::cursor::encrypt;

    const STORE: &str = "00112233445566778899AABBCCDDEEFF";

    #[test]
    fn tokens_of_earlier_versions_are_read() {
        let former = |uuid: &str, version: i64| {
            let store = store_bytes(uuid);
            let sealed = encrypt(&secret(uuid), [7; 12], &store, &version.to_be_bytes()).unwrap();
            ChangesToken::Unverified(BASE64_URL_SAFE_NO_PAD.encode([&store[..], &sealed].concat()))
        };
        let code = |token: &ChangesToken| read_token(token, STORE, 50).unwrap_err().code().to_owned();
        for token in [former(STORE, 42), write_token(STORE, 42)] {
            assert_eq!(read_token(&token, STORE, 50).unwrap(), 42);
        }
        for token in
            [former(STORE, 51), write_token(STORE, 51), former("other", 42), write_token("other", 42)]
        {
            assert_eq!(code(&token), "cursor_expired", "{token:?}");
        }
        // A state is not taken without its seal: it could be made by hand.
        let ChangesToken::Verified(state) = write_token(STORE, 42) else { panic!() };
        let by_hand = ChangesToken::Unverified(BASE64_URL_SAFE_NO_PAD.encode(state));
        assert_eq!(code(&by_hand), "invalid_cursor");
    }
}
