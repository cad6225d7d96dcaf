//! One request at a time for each key, in the whole process.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use url::Url;

type Permits = HashMap<[u8; 32], Weak<Semaphore>>;

static PERMITS: LazyLock<Mutex<Permits>> = LazyLock::new(Mutex::default);

/// Returns the semaphore that requests to an origin with a key share. It has one permit.
pub(super) fn permit_of(url: &Url, key: &str) -> Arc<Semaphore> {
    let mut digest = Sha256::new();
    digest.update(url.origin().ascii_serialization());
    digest.update([0]);
    digest.update(key);
    let mut permits = PERMITS.lock();
    permits.retain(|_, permit| permit.strong_count() > 0);
    let known = permits.entry(digest.finalize().into()).or_default();
    known.upgrade().unwrap_or_else(|| {
        let permit = Arc::new(Semaphore::new(1));
        *known = Arc::downgrade(&permit);
        permit
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_with_one_key_share_a_permit() {
        let url = |text: &str| text.parse::<Url>().unwrap();
        let one = permit_of(&url("https://a.example/v1"), "k");
        assert!(Arc::ptr_eq(&one, &permit_of(&url("https://a.example/other"), "k")));
        assert!(!Arc::ptr_eq(&one, &permit_of(&url("https://a.example/v1"), "l")));
        assert!(!Arc::ptr_eq(&one, &permit_of(&url("https://b.example/v1"), "k")));
    }
}
