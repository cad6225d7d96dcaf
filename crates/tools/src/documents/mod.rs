//! Document search over any store of documents: the rules of the contract that no store knows.
//!
//! * `cache`: answers to equal searches, `shared_answers`: those that servers share, `history`: the searches of a project, `caller_hash`: their callers
//! * `neighbors`: the chunks beside results
//! * `error`: the errors of requests, with the codes of the contract
//! * `projects`: the projects that a caller may read
//! * `search`: searches for chunks, from a request to results, `question`: the topic of a question
//!
//! **Invariant:** a project that does not exist and one that the caller may not read are the same error.

mod cache;
mod caller_hash;
mod error;
mod history;
mod neighbors;
mod projects;
mod question;
mod search;
mod shared_answers;

pub use cache::{CachedAnswer, SearchCache};
pub use error::DocsError;
pub use history::{AnsweredSearch, remember};
pub use neighbors::{Neighbor, Neighbors, neighbors};
pub use projects::{FoundProject, ReadableProjects};
pub use search::{MAX_QUERY_CHARS, SearchAnswer, SearchRequest, SearchResult, search};
