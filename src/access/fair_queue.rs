//! A queue for the questions to an authorization server in which no client address takes the places of others.
//!
//! Each address has at most a quarter of the places, so that made-up tokens delay only other tokens from
//! the same address. An address has a bounded number of questions that wait; more are refused at once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Questions to the server at the same time. More wait, within the deadline.
const MAX_IN_FLIGHT: usize = 16;

/// Questions of one address at the same time.
const MAX_IN_FLIGHT_OF_ADDRESS: usize = 4;

/// Questions of one address that are asked or wait.
const MAX_QUEUED_OF_ADDRESS: usize = 64;

/// The places in the queue.
#[derive(Debug)]
pub(super) struct FairQueue {
    places: Arc<Semaphore>,
    /// The addresses with questions that are asked or wait.
    addresses: Mutex<HashMap<IpAddr, Share>>,
}

/// The share of one address.
#[derive(Debug)]
struct Share {
    places: Arc<Semaphore>,
    questions: usize,
}

/// A question that may be asked, until it is dropped.
#[derive(Debug)]
pub(super) struct Place<'queue> {
    _of_address: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
    _entry: QueueEntry<'queue>,
}

/// One question of an address, asked or not.
#[derive(Debug)]
struct QueueEntry<'queue> {
    queue: &'queue FairQueue,
    address: IpAddr,
}

/// An address has too many questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QueueFull;

impl FairQueue {
    pub(super) fn new() -> Self {
        Self { places: Arc::new(Semaphore::new(MAX_IN_FLIGHT)), addresses: Mutex::default() }
    }

    /// Waits for a place.
    pub(super) async fn place(&self, address: IpAddr) -> Result<Place<'_>, QueueFull> {
        let (entry, places) = self.enter(address)?;
        // The address's share comes first, so that one address never has more than its share in the common queue.
        let of_address = places.acquire_owned().await.map_err(|_closed| QueueFull)?;
        let of_all = Arc::clone(&self.places).acquire_owned().await.map_err(|_closed| QueueFull)?;
        Ok(Place { _of_address: of_address, _of_all: of_all, _entry: entry })
    }

    fn enter(&self, address: IpAddr) -> Result<(QueueEntry<'_>, Arc<Semaphore>), QueueFull> {
        let mut addresses = self.addresses();
        let share = addresses.entry(address).or_insert_with(|| Share {
            places: Arc::new(Semaphore::new(MAX_IN_FLIGHT_OF_ADDRESS)),
            questions: 0,
        });
        if share.questions >= MAX_QUEUED_OF_ADDRESS {
            return Err(QueueFull);
        }
        share.questions += 1;
        Ok((QueueEntry { queue: self, address }, Arc::clone(&share.places)))
    }

    fn addresses(&self) -> MutexGuard<'_, HashMap<IpAddr, Share>> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for QueueEntry<'_> {
    fn drop(&mut self) {
        if let Entry::Occupied(mut share) = self.queue.addresses().entry(self.address) {
            share.get_mut().questions -= 1;
            if share.get().questions == 0 {
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
    fn an_address_waits_for_itself_alone() {
        let queue = FairQueue::new();
        let place = |address: u8| queue.place(IpAddr::from([192, 0, 2, address])).now_or_never();
        let mut held: Vec<_> = (0..4).map(|_| place(1).unwrap().unwrap()).collect();
        assert!(place(1).is_none());
        for address in 2..=4 {
            held.extend((0..4).map(|_| place(address).unwrap().unwrap()));
        }
        // All sixteen places are taken.
        assert!(place(5).is_none());
        held.remove(0);
        assert!(place(5).unwrap().is_ok() && place(1).unwrap().is_ok());
        drop(held);
        assert!(queue.addresses().is_empty());
    }

    #[test]
    fn questions_of_an_address_are_bounded() {
        let queue = FairQueue::new();
        let (junk, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let waiting: Vec<_> = (0..MAX_QUEUED_OF_ADDRESS).map(|_| queue.enter(junk).unwrap()).collect();
        assert_eq!(queue.enter(junk).unwrap_err(), QueueFull);
        assert!(queue.enter(other).is_ok());
        drop(waiting);
        assert!(queue.enter(junk).is_ok());
    }
}
