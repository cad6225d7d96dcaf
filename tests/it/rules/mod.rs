//! Rules of structure, language and documents.

#[cfg(unix)]
mod documented_commands;
mod import_cycles;
mod language;
mod tidy;
