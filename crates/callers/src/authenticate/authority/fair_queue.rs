//! A queue for introspections and sign-ins in which no client address can take the permits of others.
//!
//! Each address has at most a quarter of the permits, so that invalid tokens and codes delay only requests from the same
//! address. The number of waiting requests per address is bounded; more are rejected at once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of concurrent requests to the server. More wait, within the timeout.
const MAX_IN_FLIGHT: usize = 16;

/// Maximum number of concurrent requests of one address.
const MAX_IN_FLIGHT_OF_ADDRESS: usize = 4;

/// Maximum number of running and waiting requests of one address.
const MAX_QUEUED_OF_ADDRESS: usize = 64;

/// A queue of requests, bounded in total and per address.
#[derive(Debug)]
pub(crate) struct FairQueue {
    permits: Arc<Semaphore>,
    /// Shares of the addresses with running or waiting requests.
    addresses: Mutex<HashMap<IpAddr, AddressShare>>,
}

/// The permits and the request count of one address.
#[derive(Debug)]
struct AddressShare {
    permits: Arc<Semaphore>,
    requests: usize,
}

/// A permit for one request, released when it is dropped.
#[derive(Debug)]
pub(crate) struct QueuePermit<'queue> {
    _of_address: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
    _entry: QueueEntry<'queue>,
}

/// The entry of one running or waiting request in the count of its address.
#[derive(Debug)]
struct QueueEntry<'queue> {
    queue: &'queue FairQueue,
    address: IpAddr,
}

/// The error for an address with too many requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueFull;

impl FairQueue {
    pub(crate) fn new() -> Self {
        Self { permits: Arc::new(Semaphore::new(MAX_IN_FLIGHT)), addresses: Mutex::default() }
    }

    /// Waits for a permit.
    pub(crate) async fn acquire(&self, address: IpAddr) -> Result<QueuePermit<'_>, QueueFull> {
        let (entry, permits) = self.enter(address)?;
        // The address's permit comes first, so that one address never has more than its share in the common queue.
        let of_address = permits.acquire_owned().await.map_err(|_closed| QueueFull)?;
        let of_all = Arc::clone(&self.permits).acquire_owned().await.map_err(|_closed| QueueFull)?;
        Ok(QueuePermit { _of_address: of_address, _of_all: of_all, _entry: entry })
    }

    fn enter(&self, address: IpAddr) -> Result<(QueueEntry<'_>, Arc<Semaphore>), QueueFull> {
        let mut addresses = self.addresses.lock();
        let share = addresses.entry(address).or_insert_with(|| AddressShare {
            permits: Arc::new(Semaphore::new(MAX_IN_FLIGHT_OF_ADDRESS)),
            requests: 0,
        });
        if share.requests >= MAX_QUEUED_OF_ADDRESS {
            return Err(QueueFull);
        }
        share.requests += 1;
        Ok((QueueEntry { queue: self, address }, Arc::clone(&share.permits)))
    }
}

impl Drop for QueueEntry<'_> {
    fn drop(&mut self) {
        if let Entry::Occupied(mut share) = self.queue.addresses.lock().entry(self.address) {
            share.get_mut().requests -= 1;
            if share.get().requests == 0 {
                share.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn an_address_waits_only_for_its_own_requests() {
        let queue = FairQueue::new();
        let place = |address: u8| queue.acquire(IpAddr::from([192, 0, 2, address])).now_or_never();
        let mut held: Vec<_> = (0..4).map(|_| place(1).unwrap().unwrap()).collect();
        assert!(place(1).is_none());
        for address in 2..=4 {
            held.extend((0..4).map(|_| place(address).unwrap().unwrap()));
        }
        // All sixteen permits are taken.
        assert!(place(5).is_none());
        held.remove(0);
        assert!(place(5).unwrap().is_ok() && place(1).unwrap().is_ok());
        drop(held);
        assert!(queue.addresses.lock().is_empty());
    }

    #[test]
    fn requests_of_an_address_are_bounded() {
        let queue = FairQueue::new();
        let (junk, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let waiting: Vec<_> = (0..MAX_QUEUED_OF_ADDRESS).map(|_| queue.enter(junk).unwrap()).collect();
        assert_eq!(queue.enter(junk).unwrap_err(), QueueFull);
        assert!(queue.enter(other).is_ok());
        drop(waiting);
        assert!(queue.enter(junk).is_ok());
    }
}
