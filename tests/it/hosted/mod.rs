//! Servers for many callers.

mod callers;
mod hammer;
mod introspection_queue;
mod pages;
mod sign_in;
pub(crate) mod source_sign_ins;
