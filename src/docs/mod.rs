//! Document search over any store of documents: the rules of the contract that no store knows.
//!
//! * `cache`: answers to equal searches, `history`: the searches of a project
//! * `error`: the errors of requests, with the codes of the contract
//! * `projects`: the projects that a caller may read
//! * `search`: searches for chunks, from a request to results, `question`: the topic of a question
//!
//! **Invariant:** a project that does not exist and one that the caller may not read are the same error.

mod cache;
mod error;
mod history;
mod projects;
mod question;
mod search;

pub use cache::{CachedAnswer, KnownSearch, SearchCache};
pub use error::DocsError;
pub use history::remember;
pub use projects::{FoundProject, ReadableProjects};
pub use search::{MAX_QUERY_CHARS, RerankStage, SearchAnswer, SearchRequest, SearchResult, Stages, search};
