//! The Context Protection API, `/api/v1`.

mod content;
mod contract_examples;
mod cursors;
mod details;
mod lists;
mod observed;
mod overrides;
