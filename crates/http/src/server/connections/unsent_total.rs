//! Bounds the unsent bytes of the responses on all connections that belong to no caller.
//!
//! Opening connections costs a client nothing, so a limit for each of them is not enough. Beyond the common limit, the
//! connection with the most unsent bytes is closed: a client that reads its responses has next to none.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// Memory of a stream whose response waits to be sent, in bytes: its task, its headers and its state in HTTP/2.
const STREAM_BYTES: usize = 4 * 1024;

/// Unsent bytes of the responses on all connections that belong to no caller. Cheap to clone; clones share the count.
#[derive(Debug, Clone)]
pub(super) struct UnsentTotal {
    limit: usize,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Sum of the bytes of all connections.
    bytes: usize,
    /// Connections with unsent bytes, by number.
    connections: HashMap<u64, UnsentConnection>,
    /// Number of the next connection.
    next: u64,
}

#[derive(Debug)]
struct UnsentConnection {
    bytes: usize,
    hang_up: CancellationToken,
}

/// A connection's part of an [`UnsentTotal`]. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct UnsentOfConnection {
    total: UnsentTotal,
    number: u64,
    hang_up: CancellationToken,
}

/// Counted bytes of one response, subtracted on drop.
#[derive(Debug)]
pub(super) struct CountedUnsent {
    connection: UnsentOfConnection,
    bytes: usize,
}

impl UnsentTotal {
    /// Creates a count in which nothing is unsent. `limit` is in bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, waiting: Arc::default() }
    }

    /// Creates the count of a connection, which is closed by cancelling `hang_up`.
    pub(super) fn connection(&self, hang_up: CancellationToken) -> UnsentOfConnection {
        let number = self.with(|waiting| {
            waiting.next += 1;
            waiting.next
        });
        UnsentOfConnection { total: self.clone(), number, hang_up }
    }

    fn with<Answer>(&self, look: impl FnOnce(&mut Waiting) -> Answer) -> Answer {
        look(&mut self.waiting.lock())
    }
}

impl UnsentOfConnection {
    /// Counts a response of `bytes`. Closes the connections with the most unsent bytes while there are too many.
    pub(super) fn count(&self, bytes: usize) -> CountedUnsent {
        let bytes = bytes.saturating_add(STREAM_BYTES).min(self.total.limit);
        self.total.with(|waiting| {
            waiting.add(self, bytes);
            while waiting.bytes > self.total.limit && waiting.close_largest() {}
        });
        CountedUnsent { connection: self.clone(), bytes }
    }
}

impl Waiting {
    fn add(&mut self, connection: &UnsentOfConnection, bytes: usize) {
        let UnsentOfConnection { number, hang_up, .. } = connection;
        let new = || UnsentConnection { bytes: 0, hang_up: hang_up.clone() };
        self.connections.entry(*number).or_insert_with(new).bytes += bytes;
        self.bytes += bytes;
    }

    /// Subtracts the bytes of a response, unless its connection was closed and its bytes with it.
    fn subtract(&mut self, number: u64, bytes: usize) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let bytes = bytes.min(connection.bytes);
        connection.bytes -= bytes;
        self.bytes -= bytes;
        if connection.bytes == 0 {
            self.connections.remove(&number);
        }
    }

    /// Closes the connection with the most unsent bytes; returns false if there is none.
    fn close_largest(&mut self) -> bool {
        let largest = self.connections.iter().max_by_key(|(_, connection)| connection.bytes);
        let Some(number) = largest.map(|(number, _)| *number) else { return false };
        if let Some(UnsentConnection { bytes, hang_up }) = self.connections.remove(&number) {
            self.bytes -= bytes;
            hang_up.cancel();
        }
        true
    }
}

impl Drop for CountedUnsent {
    fn drop(&mut self) {
        let UnsentOfConnection { total, number, .. } = &self.connection;
        total.with(|waiting| waiting.subtract(*number, self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_bytes_of_all_close_the_largest_connection() {
        let total = UnsentTotal::new(10 * STREAM_BYTES);
        let hang_up: [CancellationToken; 3] = Default::default();
        let [small, large, new] = hang_up.clone().map(|hang_up| total.connection(hang_up));
        let closed = || hang_up.each_ref().map(CancellationToken::is_cancelled);
        let sent = small.count(0);
        let unread = [large.count(STREAM_BYTES), large.count(3 * STREAM_BYTES)];
        drop(small.count(2 * STREAM_BYTES));
        let _small = small.count(2 * STREAM_BYTES);
        assert_eq!((total.with(|waiting| waiting.bytes), closed()), (10 * STREAM_BYTES, [false; 3]));
        // Responses that were sent make room.
        drop(sent);
        let _new = new.count(0);
        assert_eq!((total.with(|waiting| waiting.bytes), closed()), (10 * STREAM_BYTES, [false; 3]));
        let _newer = new.count(0);
        assert_eq!((total.with(|waiting| waiting.bytes), closed()), (5 * STREAM_BYTES, [false, true, false]));
        // The responses of a closed connection are subtracted once.
        drop(unread);
        assert_eq!(total.with(|waiting| waiting.bytes), 5 * STREAM_BYTES);
        // A response larger than the limit closes its own connection.
        let _huge = new.count(usize::MAX);
        assert_eq!((total.with(|waiting| waiting.bytes), closed()), (3 * STREAM_BYTES, [false, true, true]));
    }
}
