//! Projects of documents in PostgreSQL, with the tables of the document-search contract.
//!
//! A document has a row in `documents`, its chunks with their vectors in `chunks`, and its text and fields as a record in the
//! stream `documents` of its project's connection. All of them are written in one transaction.
//!
//! * `store`: the trait of stores of documents
//! * `read`: reads projects, documents and chunks, `history`: searches
//! * `project`, `commit`: writes projects and documents, `copy`: projects that are copied between stores
//! * `search`: the chunks of the documents that a search ranked

mod commit;
mod copy;
mod history;
mod project;
mod read;
mod search;
mod store;
#[cfg(test)]
mod tests;

pub(crate) use copy::copied_project;
pub use copy::put_copied_project;
pub(crate) use read::known_documents;
