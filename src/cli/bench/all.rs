//! `fetchwell bench all`: everything that can be measured without a network and within a few minutes, in one answer.

use serde::Serialize;

use super::machine::Machine;
use super::{context, cursor, reload, tokens};
use crate::cli::failure::Failure;
use crate::cli::print::{FAINT, Printer};
use crate::terminal::Line;

/// Every figure, with what it was measured on.
#[derive(Debug, Serialize)]
struct Figures {
    machine: Machine,
    cursor: cursor::CursorTimes,
    tokens: Vec<tokens::Row>,
    context: context::Measured,
    reload: reload::Measured,
}

pub(super) fn run(printer: Printer) -> Result<(), Failure> {
    let figures = Figures {
        machine: Machine::this(),
        cursor: cursor::measure()?,
        tokens: tokens::measure(),
        context: context::measure()?,
        reload: reload::measure()?,
    };
    let Figures { machine, cursor, tokens, context, reload } = &figures;
    if printer.json {
        printer.value(&figures);
    } else {
        cursor.print(printer);
        tokens::print(printer, tokens);
        context.print(printer);
        reload.print(printer);
        printer.styled(Line::default().styled(FAINT, machine));
    }
    reload.check()
}
