//! Where people read the records that a model cites.
//!
//! A page has the address of its record and is for those whose record it is. Whoever follows a citation has no token at hand,
//! so `fetch` gives a link that opens the page once; what it opens it by is worth nothing for any other record.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest, Sha256};

use crate::access::GrantId;
use crate::handle::{Handle, RecordAddress};
use crate::source::pdpp::CallersToken;

/// What comes before the handle.
const PATH: &str = "/records/";

/// The parameter that opens a page once.
pub const LINK: &str = "link";

/// What a handle may have in a path as it is. A percent sign of its own is encoded, so that decoding gives the handle.
const IN_PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/').remove(b':');

/// The longest address, in bytes. A longer one is not given.
const URL_MOST: usize = 2_500;

/// Links that nobody followed yet; the oldest are forgotten first.
const LINKS_MOST: u64 = 20_000;

/// How long a link waits to be followed. Research takes its time before anybody reads it.
const LINK_LIFE: Duration = Duration::from_secs(24 * 60 * 60);

/// Bytes of what opens a page.
const KEY_BYTES: usize = 16;

/// The pages of a server.
#[derive(Debug, Clone)]
pub struct RecordPages {
    /// Where the server is, without a slash at the end.
    base: Arc<str>,
    links: Links,
    /// Whose links are made. Where callers are not told apart pages open for everybody.
    reader: Option<Reader>,
}

/// Whose records a page shows.
#[derive(Debug, Clone)]
pub struct Reader {
    /// By which grant.
    pub grant: GrantId,
    /// By which token, the latest of the grant.
    pub token: CallersToken,
}

/// Links that were not followed yet, by the hashes of what opens them.
#[derive(Debug, Clone)]
pub struct Links(Cache<[u8; 32], Link>);

/// What a link opens.
#[derive(Debug, Clone)]
pub struct Link {
    /// Whose record.
    pub reader: Reader,
    /// Which.
    pub address: RecordAddress,
}

impl RecordPages {
    /// Pages below `base`, the origin of the server.
    #[must_use]
    pub fn new(base: &str) -> Self {
        let links = Cache::builder().max_capacity(LINKS_MOST).time_to_live(LINK_LIFE);
        let links = Links(links.eviction_policy(EvictionPolicy::lru()).build());
        Self { base: base.into(), links, reader: None }
    }

    /// The same for one reader.
    #[must_use]
    pub fn read_by(&self, reader: Reader) -> Self {
        Self { reader: Some(reader), ..self.clone() }
    }

    /// The links that were made.
    #[must_use]
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// The path of a record's page.
    #[must_use]
    pub fn path(handle: &Handle) -> String {
        format!("{PATH}{}", utf8_percent_encode(handle.as_str(), IN_PATH))
    }

    /// The URL of a record's page; nothing when it is too long for one.
    #[must_use]
    pub fn url(&self, handle: &Handle) -> Option<String> {
        let url = format!("{}{}", self.base, Self::path(handle));
        (url.len() <= URL_MOST).then_some(url)
    }

    /// The same with what opens it once. Every link of a record is equally long.
    #[must_use]
    pub fn link(&self, handle: &Handle) -> Option<String> {
        let url = self.url(handle)?;
        let Some(reader) = &self.reader else { return Some(url) };
        let link = Link { reader: reader.clone(), address: handle.address().clone() };
        match self.links.make(link) {
            Some(key) => Some(format!("{url}?{LINK}={key}")),
            // Without random bytes there is no link, and the page can be opened with a token.
            None => Some(url),
        }
    }
}

impl Links {
    fn make(&self, link: Link) -> Option<String> {
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key).ok()?;
        let key = URL_SAFE_NO_PAD.encode(key);
        self.0.insert(digest(&key), link);
        Some(key)
    }

    /// What a link opens, which it goes on to do.
    #[must_use]
    pub fn look(&self, key: &str) -> Option<Link> {
        self.0.get(&digest(key))
    }

    /// What a link opens, for the last time.
    #[must_use]
    pub fn follow(&self, key: &str) -> Option<Link> {
        self.0.remove(&digest(key))
    }
}

/// What is kept of a secret: whoever sees the memory of links cannot follow them.
fn digest(key: &str) -> [u8; 32] {
    Sha256::digest(key).into()
}

#[cfg(test)]
mod tests {
    use percent_encoding::percent_decode_str;

    use super::*;

    fn pages() -> RecordPages {
        RecordPages::new("https://records.example.com")
    }

    fn reader() -> Reader {
        let caller = crate::access::Caller::Token { name: "ann".to_owned() };
        Reader { grant: caller.grant_id(), token: CallersToken::default() }
    }

    #[test]
    fn a_path_decodes_to_its_handle() {
        for handle in ["cin_home/messages:m1", "messages:m1", "a/b/c%20d", "a/b/%5Bx%5D/p2", "c/s:r?x=1&y#z"]
        {
            let path = RecordPages::path(&handle.parse().unwrap());
            let encoded = path.strip_prefix(PATH).unwrap();
            assert!(!encoded.contains(['?', '#', '&', ' ']), "{path}");
            assert_eq!(percent_decode_str(encoded).decode_utf8().unwrap(), handle);
        }
    }

    #[test]
    fn a_link_opens_one_record_once() {
        let handle: Handle = "cin_home/messages:m1".parse().unwrap();
        assert_eq!(
            pages().link(&handle).unwrap(),
            "https://records.example.com/records/cin_home/messages:m1"
        );
        let pages = pages().read_by(reader());
        let (one, other) = (pages.link(&handle).unwrap(), pages.link(&handle).unwrap());
        assert!(one != other && one.len() == other.len());
        let (_, key) = one.split_once("?link=").unwrap();
        assert_eq!(pages.links().look(key).unwrap().address, *handle.address());
        assert_eq!(pages.links().follow(key).unwrap().address, *handle.address());
        assert!(pages.links().look(key).is_none() && pages.links().follow(key).is_none());
        assert!(pages.links().follow("").is_none());
    }

    #[test]
    fn a_handle_without_room_in_a_url_has_no_page() {
        let handle: Handle = format!("c/s:{}", "%".repeat(1_000)).parse().unwrap();
        assert_eq!(pages().url(&handle), None);
    }
}
