//! `fetchwell bench all`: all benchmarks that need no network and a few minutes at most.

use fetchwell_core::terminal::Line;
use serde::Serialize;

use super::machine::Machine;
use super::{context, cursor, reload, tokens};
use crate::app::failure::Failure;
use crate::cli::print::{FAINT, Printer};

/// Results of all benchmarks, with the machine.
#[derive(Debug, Serialize)]
struct BenchResults {
    machine: Machine,
    cursor: cursor::CursorTimes,
    tokens: Vec<tokens::Row>,
    context: context::ContextTimes,
    reload: reload::ReloadTimes,
}

pub(super) fn run(printer: Printer) -> Result<(), Failure> {
    let results = BenchResults {
        machine: Machine::this(),
        cursor: cursor::measure()?,
        tokens: tokens::measure(),
        context: context::measure()?,
        reload: reload::measure()?,
    };
    let BenchResults { machine, cursor, tokens, context, reload } = &results;
    if printer.json {
        printer.value(&results);
    } else {
        cursor.print(printer);
        tokens::print(printer, tokens);
        context.print(printer);
        reload.print(printer);
        printer.styled(Line::default().styled(FAINT, machine));
    }
    reload.check()
}
