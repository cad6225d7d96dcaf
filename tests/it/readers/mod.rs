//! Readers of files: real samples of each kind, and files that are damaged or encrypted.

#[cfg(unix)]
mod damaged;
mod samples;
mod shapes;
mod tables;
