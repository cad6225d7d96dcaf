//! The embedded store and its files.

mod aggregates;
mod backup;
mod export;
mod foreign_files;
mod full_disk;
mod index_files;
mod info;
mod interrupted_index;
mod old_store;
#[cfg(unix)]
mod permissions;
mod read_only;
mod removal;
mod searches;
mod stored_positions;
mod walk;
