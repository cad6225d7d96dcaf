//! Readers of files: real samples of each kind, mail of many shapes, and files that are damaged or encrypted.

#[cfg(unix)]
mod damaged;
mod mail;
mod office;
mod samples;
mod shapes;
mod slack;
mod tables;
