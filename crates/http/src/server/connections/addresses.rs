//! Counts the connections of each client address, so that one client cannot take all that there are.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::server::forwarded::{TrustedProxies, network_of};

/// Number of open connections per address. An IPv6 address counts as its /64 network. Trusted proxies are not
/// counted, because their connections are those of many clients.
#[derive(Debug, Clone)]
pub(super) struct Addresses {
    limit: u32,
    exempt: TrustedProxies,
    open: Arc<Mutex<HashMap<IpAddr, u32>>>,
}

/// Guard of one counted connection.
#[derive(Debug)]
pub(super) struct AddressSlot {
    /// Counted address, or `None` for an exempt one.
    counted: Option<(Addresses, IpAddr)>,
}

impl Addresses {
    pub(super) fn new(limit: u32, exempt: TrustedProxies) -> Self {
        Self { limit, exempt, open: Arc::default() }
    }

    /// Counts a connection; returns `None` if the address has reached its limit.
    pub(super) fn slot(&self, peer: IpAddr) -> Option<AddressSlot> {
        if self.exempt.trusts(peer) {
            return Some(AddressSlot { counted: None });
        }
        let address = network_of(peer);
        let mut counts = self.open.lock();
        let count = counts.entry(address).or_default();
        if *count >= self.limit {
            return None;
        }
        *count += 1;
        Some(AddressSlot { counted: Some((self.clone(), address)) })
    }
}

impl Drop for AddressSlot {
    fn drop(&mut self) {
        let Some((addresses, address)) = &self.counted else { return };
        if let Entry::Occupied(mut count) = addresses.open.lock().entry(*address) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_share_and_a_trusted_proxy_has_no_limit() {
        let addresses = Addresses::new(2, ["10.0.0.0/8".parse().unwrap()].into_iter().collect());
        let slot = |address: &str| addresses.slot(address.parse().unwrap());
        let mut held = Vec::new();
        for (address, is_served) in [
            ("127.0.0.1", true),
            ("127.0.0.1", true),
            ("127.0.0.1", false),
            ("::ffff:127.0.0.1", false),
            ("127.0.0.2", true),
            ("2001:db8::1", true),
            ("2001:db8::2", true),
            ("2001:db8::3", false),
            ("2001:db8:0:1::1", true),
            ("10.1.2.3", true),
            ("10.1.2.3", true),
            ("10.1.2.3", true),
        ] {
            let slot = slot(address);
            assert_eq!(slot.is_some(), is_served, "{address}");
            held.extend(slot);
        }
        held.remove(0);
        assert!(slot("127.0.0.1").is_some());
        held.clear();
        assert!(addresses.open.lock().is_empty());
    }
}
