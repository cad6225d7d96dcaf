//! `fetchwell import`, `add` and `sync`.

mod batches;
pub(crate) mod commands;
mod documents;
mod exports;
pub(crate) mod files;
mod hostile_files;
mod notes;
mod order;
mod real_mail;
mod report;
mod skips;
mod stalled_imports;
pub(crate) mod sync;
mod sync_states;
pub(crate) mod values;
