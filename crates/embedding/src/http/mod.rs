//! Embedding models behind an HTTP API.
//!
//! * `endpoint`: the URL of a service, and the shape of its requests that follows from it
//! * `shape`: requests and answers of each shape
//! * `in_flight`: one request at a time for each key
//! * `retry`: pauses that a service asks for
//! * `model`: `HttpModel`, and the shapes that embed queries and documents differently

mod endpoint;
mod in_flight;
mod model;
mod retry;
mod shape;

pub use endpoint::Endpoint;
pub use model::HttpModel;

#[cfg(test)]
mod tests;
