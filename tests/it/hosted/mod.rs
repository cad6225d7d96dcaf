//! Servers for many callers.

mod callers;
mod hammer;
mod introspection_queue;
mod pages;
mod sign_in;
