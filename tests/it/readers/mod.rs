//! Readers of files: real samples of each kind, mail of many shapes, and files that are damaged or encrypted.

#[cfg(unix)]
mod damaged;
mod kinds;
mod mail;
mod samples;
mod shapes;
mod tables;
