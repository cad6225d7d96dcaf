//! Where people read the records that a model cites.
//!
//! A page has the address of its record and is for those whose record it is. A person who follows a citation has no token
//! at hand, so tools give a link that opens the page while it is valid; what it opens it by is worth nothing for any other
//! record. The link of one record and grant is always the same, so that a citation of `search` is that of `fetch`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::Sha256;

use super::tickets::{KEY_CHARS, TicketKey};
use super::{TicketLimits, Tickets};
use crate::access::{Caller, GrantId};
use crate::handle::{Handle, RecordAddress};
use crate::source::pdpp::CallersToken;

/// What comes before the handle.
const PATH: &str = "/records/";

/// The parameter that opens a page.
pub const LINK: &str = "link";

/// What a handle may have in a path as it is. A percent sign of its own is encoded, so that decoding gives the handle.
const IN_PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/').remove(b':');

/// The longest address, in bytes. A longer one is not given.
const URL_MOST: usize = 2_500;

/// Links that are valid. One person has as many as a long session of research reads, which takes its time before
/// anybody follows one.
const LINKS: TicketLimits =
    TicketLimits { most: 20_000, of_one_most: 1_000, life: Duration::from_secs(24 * 60 * 60) };

/// The pages of a server.
#[derive(Debug, Clone)]
pub struct RecordPages {
    /// Where the server is, without a slash at the end.
    base: Arc<str>,
    links: Links,
    /// What links are made with; `None` where the system gave no random bytes.
    secret: Option<Secret>,
    /// Whose links are made. Where callers are not told apart pages open for everybody.
    reader: Option<Reader>,
    /// For whom a link is only measured: whoever reads a page is where it would lead.
    is_there: bool,
}

/// The secret of links, which ends with the process as they do.
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

    /// Returns what opens a record for a grant.
    fn key(&self, grant: GrantId, handle: &Handle) -> TicketKey {
        let mut mac = self.0.clone();
        mac.update(grant.to_string().as_bytes());
        mac.update(&[0]);
        mac.update(handle.as_str().as_bytes());
        let tag = mac.finalize().into_bytes();
        let mut key = TicketKey::default();
        key.iter_mut().zip(tag).for_each(|(byte, tag)| *byte = tag);
        key
    }
}

/// Whose records a page shows.
#[derive(Debug, Clone)]
pub struct Reader {
    /// By which grant.
    pub grant: GrantId,
    /// Who has it.
    pub person: GrantId,
    /// By which token.
    pub token: CallersToken,
}

impl Reader {
    /// A caller, by this token.
    #[must_use]
    pub fn of(caller: &Caller, token: CallersToken) -> Self {
        Self { grant: caller.grant_id(), person: caller.person_id(), token }
    }
}

/// Links that are valid.
pub type Links = Tickets<Link>;

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
        let (links, secret) = (Links::new(LINKS), Secret::random());
        Self { base: base.into(), links, secret, reader: None, is_there: false }
    }

    /// The same for one reader.
    #[must_use]
    pub fn read_by(&self, reader: Reader) -> Self {
        Self { reader: Some(reader), ..self.clone() }
    }

    /// The same for somebody who reads the page: parts are as long as with a link, and none is made.
    #[must_use]
    pub fn for_a_page(&self) -> Self {
        Self { is_there: true, ..self.clone() }
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

    /// The same with what opens it for the reader. Links of one record are equally long, and each reader's has its own end.
    #[must_use]
    pub fn link(&self, handle: &Handle) -> Option<String> {
        let url = self.url(handle)?;
        let Some(reader) = &self.reader else { return Some(url) };
        if self.is_there {
            return Some(format!("{url}?{LINK}={}", "x".repeat(KEY_CHARS)));
        }
        let link = Link { reader: reader.clone(), address: handle.address().clone() };
        // Without random bytes there is no link, and the page can be opened with a token.
        let Some(secret) = &self.secret else { return Some(url) };
        let key = self.links.issue_as(reader.person, secret.key(reader.grant, handle), link);
        Some(format!("{url}?{LINK}={key}"))
    }

    /// What is the same in every link of a record. The rest is always as many letters, and not as many tokens.
    #[must_use]
    pub fn steady<'a>(&self, link: &'a str) -> &'a str {
        let is_ours = self.reader.is_some() && link.starts_with(&*self.base);
        let (steady, _) = link.rsplit_once(&format!("?{LINK}=")).filter(|_| is_ours).unwrap_or((link, ""));
        steady
    }
}

#[cfg(test)]
mod tests {
    use percent_encoding::percent_decode_str;
    use serde_json::{Value, json};

    use super::*;
    use crate::fit::count_tokens;
    use crate::source::pdpp::Recorded;
    use crate::tools::{Profile, Toolbox};

    fn pages() -> RecordPages {
        RecordPages::new("https://records.example.com")
    }

    fn reader() -> Reader {
        Reader::of(&Caller::Token { name: "ann".to_owned() }, CallersToken::default())
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
        let bob = Reader::of(&Caller::Token { name: "bob".to_owned() }, CallersToken::default());
        let of_bob = pages.read_by(bob).link(&handle).unwrap();
        let second = pages.link(&"cin_home/messages:m2".parse().unwrap()).unwrap();
        assert!(
            one != of_bob && one.len() == of_bob.len() && !second.ends_with(one.split_once('=').unwrap().1)
        );
        let measured = pages.for_a_page().link(&handle).unwrap();
        assert!(measured.len() == one.len() && measured.ends_with("xxx"));
        let (_, key) = one.split_once("?link=").unwrap();
        assert_eq!(pages.links().look(key).unwrap().address, *handle.address());
        assert_eq!(pages.links().look(key).unwrap().address, *handle.address());
        assert!(pages.links().look("").is_none());
    }

    #[test]
    fn the_letters_that_open_a_page_are_a_token_each_at_most() {
        let handle: Handle = "cin_home/messages:m1".parse().unwrap();
        let open = pages();
        assert_eq!(open.steady("https://records.example.com/?link=x"), "https://records.example.com/?link=x");
        let pages = pages().read_by(reader());
        assert_eq!(pages.steady("https://example.com/?link=x"), "https://example.com/?link=x");
        for number in 0..1_000 {
            let reader = Reader::of(&Caller::Token { name: format!("{number}") }, CallersToken::default());
            let pages = pages.read_by(reader);
            let link = pages.link(&handle).unwrap();
            let steady = pages.steady(&link);
            assert_eq!(steady, pages.url(&handle).unwrap());
            let json = |url: &str| count_tokens(&json!({"url": url, "title": ""}).to_string());
            assert!(json(&link) <= json(steady) + link.len() - steady.len(), "{link}");
        }
    }

    #[tokio::test]
    async fn a_part_ends_where_the_next_begins_whatever_link_comes_with_it() {
        let text: String = (0..5_000).map(|line| format!("Line {line} of many.\n")).collect();
        let record = json!({"object": "record", "id": "m1", "stream": "messages", "connection_id": "cin_home",
            "emitted_at": "2026-11-22T00:00:00Z", "data": {"text": text}});
        let [search, records, schema] = Default::default();
        let name = "home".parse().unwrap();
        let source = Recorded { name, search, record: record.to_string(), records, schema };
        let toolbox = Toolbox::new(Arc::new(source), Duration::from_secs(60)).unwrap();
        let toolbox = toolbox.with_pages(Some(pages().read_by(reader())));
        let (mut ids, mut read) = (vec!["cin_home/messages:m1".to_owned()], String::new());
        while let Some(id) = ids.pop() {
            let mut part = Value::Null;
            // Each of these has another link.
            for again in 0..40 {
                let arguments = [("id".to_owned(), Value::from(id.as_str()))].into_iter().collect();
                let answer = toolbox.call(Profile::Standard, "fetch", arguments).await.unwrap().unwrap();
                let mut answer: Value = serde_json::from_str(answer.json()).unwrap();
                assert!(answer["url"].take().as_str().unwrap().contains("?link="));
                assert!(again == 0 || answer == part, "{id} is another text");
                part = answer;
            }
            read.push_str(part["text"].as_str().unwrap());
            ids.extend(part["metadata"]["next"].as_str().map(str::to_owned));
        }
        assert!(read == text, "the parts are not the text");
    }

    #[test]
    fn a_handle_without_room_in_a_url_has_no_page() {
        let handle: Handle = format!("c/s:{}", "%".repeat(1_000)).parse().unwrap();
        assert_eq!(pages().url(&handle), None);
    }
}
