//! The command line, configurations and terminal output.

mod commands;
mod configuration;
mod default_store;
mod eval;
mod found_files;
mod sources;
mod terminal;
