//! Projects and document search.

mod admin;
mod api;
mod embeddings;
mod errors;
mod inputs;
mod interleavings;
mod list;
mod projects;
mod shared_projects;
mod stream;
mod tenants;
mod tools;
