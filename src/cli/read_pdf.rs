//! `fetchwell read-pdf`: the process that reads one PDF document for an import.

use std::io::{self, Read};

use clap::Args;
use fetchwell_connectors::{extract_pdf, limit_pdf_memory};

use super::print::Printer;
use crate::app::failure::Failure;

/// Maximum size of a document in bytes. The import has refused larger ones.
const MAX_BYTES: u64 = 128 * 1024 * 1024;

/// Read a PDF document from standard input and print its text as JSON. Imports run this command.
#[derive(Debug, Args)]
#[command(hide = true)]
pub(super) struct ReadPdf {}

impl ReadPdf {
    pub(super) fn run(self, printer: Printer) -> Result<(), Failure> {
        limit_pdf_memory();
        let mut bytes = Vec::new();
        io::stdin()
            .take(MAX_BYTES)
            .read_to_end(&mut bytes)
            .map_err(|error| Failure::new(format!("standard input cannot be read ({error})")))?;
        printer.value(&extract_pdf(bytes));
        Ok(())
    }
}
