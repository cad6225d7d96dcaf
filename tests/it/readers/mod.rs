//! Readers of files: real samples of each kind, mail of many shapes with its attachments, and files that are damaged or encrypted.

mod attachments;
#[cfg(unix)]
mod damaged;
mod hostile_attachments;
mod kinds;
mod mail;
mod office;
#[cfg(unix)]
mod recognition;
mod samples;
mod shapes;
mod slack;
mod tables;
