//! The record-server contract, `/v1`.

pub(crate) mod change_feed;
mod change_tokens;
mod fixed_source;
mod http;
mod records;
