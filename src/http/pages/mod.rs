//! Pages for people and documents for clients outside the APIs.
//!
//! * `root`: `/`
//! * `record_page`: `/records/`
//! * `well_known`: `/.well-known/`

pub(in crate::http) mod record_page;
pub(in crate::http) mod root;
pub(in crate::http) mod well_known;
