//! `fetchwell store copy`: copies a store into another one, between files and PostgreSQL.

use std::path::PathBuf;

use clap::Args;
use fetchwell_core::terminal::output::note;
use fetchwell_source::{ConnectionCopy, CopyError, StoreCopy};
use serde_json::json;

use crate::app::failure::Failure;
use crate::app::imports::ImportStore;
use crate::app::open::open_store_at;
use crate::cli::backup::until_stopped;
use crate::cli::print::{Printer, counted, grouped};
use crate::config::Environment;

/// Copy all records of a store into another one, with their ids: a file to PostgreSQL, or back.
///
/// An interrupted copy continues when it is run again. Projects keep the ids of their documents and chunks. Vectors, search
/// histories and the imports that a store remembers are not copied.
#[derive(Debug, Args)]
pub(super) struct Copy {
    /// The store to read: a file, or the URL of a PostgreSQL database.
    from: PathBuf,

    /// The store to write; created if it does not exist.
    to: PathBuf,
}

/// Result of the command.
struct Copied {
    connections: Vec<ConnectionCopy>,
    /// True if a project was copied, so that its vectors have to be built.
    has_project: bool,
}

impl Copy {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let (from, to) = (open_store_at(&self.from, environment)?, open_store_at(&self.to, environment)?);
        if from.place() == to.place() {
            return Err(Failure::usage(&"a store is not copied into itself; name another one"));
        }
        let (from_name, to_name) = (from.place(), to.place());
        let (written, environment) = (ImportStore::from_place(&self.to)?, environment.clone());
        let progress = move |copy: &ConnectionCopy| {
            if !printer.json {
                print_connection(printer, copy);
            }
        };
        let copied = until_stopped(move |stop| {
            // On a thread of the runtime that the writer of a database waits with.
            let target = written.import_target(&environment)?;
            let copy = StoreCopy { from: &*from, to: &*to, target };
            let mut copied = Copied { connections: Vec::new(), has_project: false };
            for known in copy.connections()? {
                copied.has_project |= known.is_project;
                let done = copy.copy(&known.connection, stop)?;
                progress(&done);
                copied.connections.push(done);
            }
            Ok::<_, CopyError>(copied)
        })?;
        print(printer, &copied, &from_name, &to_name);
        Ok(())
    }
}

fn print_connection(printer: Printer, copy: &ConnectionCopy) {
    let written = copy.tally.added + copy.tally.changed + copy.tally.deleted;
    let written = match written {
        0 => "nothing to copy".to_owned(),
        written => format!("{} copied", grouped(written)),
    };
    printer.line(format_args!("{}: {}, {written}", copy.connection_id, counted(copy.records, "record")));
}

fn print(printer: Printer, copied: &Copied, from: &str, to: &str) {
    let records: u64 = copied.connections.iter().map(|copy| copy.records).sum();
    if !printer.json {
        let connections = counted(copied.connections.len().try_into().unwrap_or(u64::MAX), "connection");
        note(&format_args!(
            "{to} has the {} of {connections} of {from}, verified by count and hash",
            counted(records, "record")
        ));
        if copied.has_project {
            note(&format_args!(
                "vectors are not copied; run `fetchwell embeddings build --store {to}` for searches by meaning"
            ));
        }
        return;
    }
    let connections = copied.connections.iter().map(|copy| {
        let tally = copy.tally;
        json!({
            "connection_id": copy.connection_id.as_str(), "records": copy.records,
            "added": tally.added, "changed": tally.changed, "deleted": tally.deleted,
        })
    });
    printer.value(&json!({
        "from": from, "to": to, "records": records, "connections": connections.collect::<Vec<_>>(),
    }));
}
