//! Links to record pages.
//!
//! A page has the URL of its record and is only for people who may read the record. A person who follows a citation has no
//! token at hand, so tools add a link key that opens the page. The key is a MAC over the grant, the record and the day, so
//! no link is stored and none is evicted: it opens the page until the end of the next day (UTC). All links to one record
//! for one grant on one day are equal. Clocks of servers differ, so a link of the next day is valid, too.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fetchwell_core::handle::{Handle, RecordAddress};
use fetchwell_core::lru::{LruCache, LruLimits};
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::{Caller, GrantId, GrantToken};

/// Path prefix of record pages.
const PATH: &str = "/records/";

/// Query parameter with the link key.
pub const LINK: &str = "link";

/// Characters of a handle that are encoded in a path. That includes the percent sign, so that decoding gives the handle.
const IN_PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/').remove(b':');

/// Maximum length of a URL in bytes. A longer one is omitted.
const MAX_URL_BYTES: usize = 2_500;

/// Bytes of a link key that identify the grant: among 10,000 grants, no two share one of 2^48 values.
const ALIAS_BYTES: usize = 6;

/// Bytes of a link key that authenticate it.
const TAG_BYTES: usize = 12;

/// Length of a link key in Base64 characters.
const KEY_CHARS: usize = (ALIAS_BYTES + TAG_BYTES) * 4 / 3;

/// Maximum number of grants with links; the least recently used is evicted. Its links open again after it gets another
/// link.
const MAX_READERS: u64 = 10_000;

/// Maximum lifetime of a link: the day on which it was issued, and the next.
pub const MAX_LINK_LIFE: Duration = Duration::from_secs(2 * SECONDS_OF_DAY.unsigned_abs());

const SECONDS_OF_DAY: i64 = 24 * 60 * 60;

/// Identifies a grant in its links.
type Alias = [u8; ALIAS_BYTES];

/// The record pages of a server.
#[derive(Debug, Clone)]
pub struct RecordPages {
    /// URL of the server, without a slash at the end.
    base: Arc<str>,
    /// Readers by the alias of their grant.
    readers: LruCache<Alias, Reader>,
    /// Secret of link keys; `None` if the system provided no random bytes.
    secret: Option<Secret>,
    /// Reader that links are issued to. Without authentication there is none, and pages need no link key.
    reader: Option<Reader>,
    /// True if people sign in at the authorization server, so that those with an account there need no link key.
    has_sign_in: bool,
}

/// The secret of link keys: random for each process, unless servers share their state.
#[derive(Clone)]
struct Secret(Hmac<Sha256>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    fn random() -> Option<Self> {
        let mut block = [0; 64];
        getrandom::fill(&mut block).ok()?;
        Some(Self(Hmac::new(&block.into())))
    }

    fn from_shared(secret: &[u8; 32]) -> Self {
        let mut block = [0; 64];
        block.iter_mut().zip(secret).for_each(|(byte, of_secret)| *byte = *of_secret);
        Self(Hmac::new(&block.into()))
    }

    /// Returns the alias of a grant in its links.
    fn alias(&self, grant: GrantId) -> Alias {
        self.mac(&["grant", &grant.to_string()])
    }

    /// Returns the MAC of the link to a record that a grant gets on a day.
    fn tag(&self, grant: GrantId, record: &RecordAddress, day: i64) -> [u8; TAG_BYTES] {
        let RecordAddress { connection, stream, record } = record;
        let connection = connection.as_ref().map_or_else(String::new, |connection| format!("/{connection}"));
        let parts = [connection, stream.to_string(), record.to_string(), day.to_string()];
        let [connection, stream, record, day] = parts.each_ref().map(String::as_str);
        self.mac(&["link", &grant.to_string(), connection, stream, record, day])
    }

    /// Returns the first bytes of a MAC over strings, each prefixed with its length.
    fn mac<const BYTES: usize>(&self, texts: &[&str]) -> [u8; BYTES] {
        let mut mac = self.0.clone();
        for text in texts {
            mac.update(&text.len().to_be_bytes());
            mac.update(text.as_bytes());
        }
        let whole = mac.finalize().into_bytes();
        std::array::from_fn(|at| whole.get(at).copied().unwrap_or_default())
    }
}

/// The grant with which a page reads its record.
#[derive(Debug, Clone)]
pub struct Reader {
    /// Id of the grant.
    pub grant: GrantId,
    /// Id of the person who has the grant.
    pub person: GrantId,
    /// Latest token of the grant.
    pub token: GrantToken,
    /// True for a subject of an authorization server, who can sign in there.
    pub can_sign_in: bool,
}

impl Reader {
    /// Creates the reader for a caller with a token.
    #[must_use]
    pub fn new(caller: &Caller, token: GrantToken) -> Self {
        let can_sign_in = matches!(caller, Caller::Subject(_));
        Self { grant: caller.grant_id(), person: caller.person_id(), token, can_sign_in }
    }
}

impl RecordPages {
    /// Creates the pages below `base`, the origin of the server.
    #[must_use]
    pub fn new(base: &str) -> Self {
        let readers = LruCache::new(LruLimits::new(MAX_READERS).with_max_idle(MAX_LINK_LIFE));
        Self { base: base.into(), readers, secret: Secret::random(), reader: None, has_sign_in: false }
    }

    /// Sets the secret of link keys that all servers have, so that the link of one opens on another.
    #[must_use]
    pub fn with_secret(self, secret: &[u8; 32]) -> Self {
        Self { secret: Some(Secret::from_shared(secret)), ..self }
    }

    /// Returns the same pages with links for a reader.
    #[must_use]
    pub fn read_by(&self, reader: Reader) -> Self {
        if let Some(secret) = &self.secret {
            self.readers.insert(secret.alias(reader.grant), reader.clone());
        }
        Self { reader: Some(reader), ..self.clone() }
    }

    /// Sets whether people sign in for pages.
    #[must_use]
    pub fn with_sign_in(&self, has_sign_in: bool) -> Self {
        Self { has_sign_in, ..self.clone() }
    }

    /// Returns the path of a record's page.
    #[must_use]
    pub fn path(handle: &Handle) -> String {
        format!("{PATH}{}", utf8_percent_encode(handle.as_str(), IN_PATH))
    }

    /// Returns the URL of a record's page, or `None` if it would be too long.
    #[must_use]
    pub fn url(&self, handle: &Handle) -> Option<String> {
        let url = format!("{}{}", self.base, Self::path(handle));
        (url.len() <= MAX_URL_BYTES).then_some(url)
    }

    /// Returns the URL with the link key of the reader, or without one if the reader signs in. All links to one record
    /// are equally long.
    #[must_use]
    pub fn link(&self, handle: &Handle) -> Option<String> {
        let url = self.url(handle)?;
        // Without random bytes there is no link key, and the page can be opened with a token.
        let Some((reader, secret)) = self.reader.as_ref().zip(self.secret.as_ref()) else { return Some(url) };
        if self.signs_in(reader) {
            return Some(url);
        }
        let alias = secret.alias(reader.grant);
        // A grant that gets links stays in the cache.
        self.readers.get_or_insert_with(alias, || reader.clone());
        let tag = secret.tag(reader.grant, handle.address(), today());
        let key = URL_SAFE_NO_PAD.encode([&alias[..], &tag].concat());
        Some(format!("{url}?{LINK}={key}"))
    }

    /// Returns true if a reader gets links with a key.
    #[must_use]
    pub fn has_links(&self, reader: &Reader) -> bool {
        self.secret.is_some() && !self.signs_in(reader)
    }

    /// Returns the name of a reader in a store that servers share.
    #[must_use]
    pub fn reader_name(&self, grant: GrantId) -> Option<String> {
        self.secret.as_ref().map(|secret| name_of(secret.alias(grant)))
    }

    /// Returns the name of the reader of a link, which may be forged.
    #[must_use]
    pub fn reader_name_in(key: &str) -> Option<String> {
        decode(key).map(|(alias, _)| name_of(alias))
    }

    fn signs_in(&self, reader: &Reader) -> bool {
        self.has_sign_in && reader.can_sign_in
    }

    /// Returns the reader that a link key for this record was issued to, or `None` if the key is invalid or the reader
    /// signs in.
    #[must_use]
    pub fn reader_of(&self, key: &str, record: &RecordAddress) -> Option<Reader> {
        self.reader_on(key, record, today())
    }

    fn reader_on(&self, key: &str, record: &RecordAddress, day: i64) -> Option<Reader> {
        let (alias, _) = decode(key)?;
        self.readers.get(&alias).filter(|reader| self.is_link_on(key, record, reader, day))
    }

    /// Returns true if a link key for this record was issued to a reader, who does not sign in.
    #[must_use]
    pub fn is_link_of(&self, key: &str, record: &RecordAddress, reader: &Reader) -> bool {
        self.is_link_on(key, record, reader, today())
    }

    fn is_link_on(&self, key: &str, record: &RecordAddress, reader: &Reader, day: i64) -> bool {
        let Some(((_, tag), secret)) = decode(key).zip(self.secret.as_ref()) else { return false };
        let is_of =
            |day: &i64| bool::from(secret.tag(reader.grant, record, *day).as_slice().ct_eq(tag.as_slice()));
        // Another server whose clock is ahead may have issued the link after its midnight.
        !self.signs_in(reader) && [day, day - 1, day + 1].iter().any(is_of)
    }

    /// Returns a link without its key. Keys always have the same number of characters, but not of model tokens.
    #[must_use]
    pub fn without_key<'a>(&self, link: &'a str) -> &'a str {
        let is_ours = self.reader.is_some() && link.starts_with(&*self.base);
        let (url, _) = link.rsplit_once(&format!("?{LINK}=")).filter(|_| is_ours).unwrap_or((link, ""));
        url
    }
}

/// Returns the alias and the tag of a link key.
fn decode(key: &str) -> Option<(Alias, Vec<u8>)> {
    let key = (key.len() == KEY_CHARS).then(|| URL_SAFE_NO_PAD.decode(key).ok())??;
    let (alias, tag) = key.split_first_chunk::<ALIAS_BYTES>()?;
    Some((*alias, tag.to_vec()))
}

fn name_of(alias: Alias) -> String {
    URL_SAFE_NO_PAD.encode(alias)
}

/// Returns the number of this day, in UTC.
fn today() -> i64 {
    Timestamp::now().as_second().div_euclid(SECONDS_OF_DAY)
}

#[cfg(test)]
mod tests {
    use percent_encoding::percent_decode_str;
    use serde_json::json;

    use super::*;
    use fetchwell_core::fit::count_tokens;

    fn pages() -> RecordPages {
        RecordPages::new("https://records.example.com")
    }

    fn reader() -> Reader {
        Reader::new(&Caller::Token { name: "ann".to_owned() }, GrantToken::default())
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
    fn a_link_opens_one_record_for_one_grant() {
        let handle: Handle = "cin_home/messages:m1".parse().unwrap();
        assert_eq!(
            pages().link(&handle).unwrap(),
            "https://records.example.com/records/cin_home/messages:m1"
        );
        let pages = pages().read_by(reader());
        let (one, other) = (pages.link(&handle).unwrap(), pages.link(&handle).unwrap());
        assert_eq!(one, other);
        let bob = Reader::new(&Caller::Token { name: "bob".to_owned() }, GrantToken::default());
        let of_bob = pages.read_by(bob).link(&handle).unwrap();
        let second = pages.link(&"cin_home/messages:m2".parse().unwrap()).unwrap();
        assert!(
            one != of_bob && one.len() == of_bob.len() && !second.ends_with(one.split_once('=').unwrap().1)
        );
        let (_, key) = one.split_once("?link=").unwrap();
        assert_eq!(key.len(), KEY_CHARS);
        let opened = |key: &str, handle: &Handle| pages.reader_of(key, handle.address());
        for _ in 0..2 {
            assert_eq!(opened(key, &handle).unwrap().grant, reader().grant);
        }
        for other in ["cin_home/messages:m2", "cin_work/messages:m1", "messages:m1", "cin_home/message:sm1"] {
            assert!(opened(key, &other.parse().unwrap()).is_none(), "{other}");
        }
        let (alias, tag) = key.split_at(8);
        let swapped = format!("{alias}{}", of_bob.get(of_bob.len() - 16..).unwrap());
        for made_up in ["", "A", tag, &"A".repeat(KEY_CHARS), &swapped] {
            assert!(opened(made_up, &handle).is_none(), "{made_up}");
        }
        assert!(RecordPages::new("https://records.example.com").reader_of(key, handle.address()).is_none());
    }

    #[test]
    fn a_link_opens_on_its_day_and_those_beside_it() {
        let (pages, handle) = (pages().read_by(reader()), "cin_home/messages:m1".parse::<Handle>().unwrap());
        let before = today();
        let link = pages.link(&handle).unwrap();
        let (_, key) = link.split_once("?link=").unwrap();
        let opens = |day: i64| pages.reader_on(key, handle.address(), day).is_some();
        // The clock of another server is behind, where it is still the day before.
        assert!(opens(today()) && opens(before + 1) && opens(before - 1));
        assert!(!opens(before - 2) && !opens(today() + 2));
    }

    #[test]
    fn links_are_not_evicted_by_later_ones() {
        let pages = pages().read_by(reader());
        let handle = |number: usize| format!("cin_home/messages:m{number}").parse::<Handle>().unwrap();
        let first = pages.link(&handle(0)).unwrap();
        for number in 1..30_000 {
            pages.link(&handle(number)).unwrap();
        }
        let (_, key) = first.split_once("?link=").unwrap();
        assert!(pages.reader_of(key, handle(0).address()).is_some());
    }

    #[test]
    fn the_letters_that_open_a_page_are_a_token_each_at_most() {
        let handle: Handle = "cin_home/messages:m1".parse().unwrap();
        let open = pages();
        assert_eq!(
            open.without_key("https://records.example.com/?link=x"),
            "https://records.example.com/?link=x"
        );
        let pages = pages().read_by(reader());
        assert_eq!(pages.without_key("https://example.com/?link=x"), "https://example.com/?link=x");
        for number in 0..1_000 {
            let reader = Reader::new(&Caller::Token { name: format!("{number}") }, GrantToken::default());
            let pages = pages.read_by(reader);
            let link = pages.link(&handle).unwrap();
            let url = pages.without_key(&link);
            assert_eq!(url, pages.url(&handle).unwrap());
            let json = |url: &str| count_tokens(&json!({"url": url, "title": ""}).to_string());
            assert!(json(&link) <= json(url) + link.len() - url.len(), "{link}");
        }
    }

    #[test]
    fn a_handle_without_room_in_a_url_has_no_page() {
        let handle: Handle = format!("c/s:{}", "%".repeat(1_000)).parse().unwrap();
        assert_eq!(pages().url(&handle), None);
    }
}
