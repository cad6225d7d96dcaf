//! Search: the language of queries, ranking, meaning, and properties.

mod by_meaning;
mod embeddings;
mod excerpts;
mod explain;
mod hostile_corpus;
mod install_model;
mod modes;
mod properties;
mod query_language;
mod query_operators;
mod ranking;
mod rerank;
mod spellings;
mod understanding;
mod ways_in;
