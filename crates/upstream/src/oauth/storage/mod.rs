//! Storage of the secrets of an account: its tokens, and the clients that are registered for it.
//!
//! * `tokens`, `lock`: storage of tokens behind a trait, and its lock
//! * `token_store`, `shared_tokens`: tokens in a file, and in the state that servers share
//! * `secret_text`: one secret text behind a trait; `private_file`, `shared_text`: in a file, and in shared state
//! * `registrations`: clients that were registered

mod lock;
mod private_file;
mod registrations;
mod secret_text;
mod shared_text;
mod shared_tokens;
mod token_store;
mod tokens;

pub use self::lock::{LockGuard, TokenLock};
pub(super) use self::registrations::ClientKey;
pub use self::registrations::Registrations;
pub use self::shared_tokens::SharedTokens;
pub use self::token_store::TokenStore;
pub use self::tokens::Tokens;
