//! Random tokens that this server issues: session tokens of browsers and links to record pages.
//!
//! * `token_store`: an in-memory store of tokens with a quota for each person
//! * `session`: the session of a browser, and the records that it may show
//! * `record_links`: the URLs of record pages and the links that open them
//! * `stored`: readers and sessions as texts

mod record_links;
mod session;
mod stored;
mod token_store;

pub use self::record_links::{LINK, MAX_LINK_LIFE, Reader, RecordPages};
pub use self::session::Session;
pub use self::token_store::{TokenLimits, TokenStore, random_token};
