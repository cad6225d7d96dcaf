//! Readers of the formats of Office 97 to 2003 (`.doc`, `.ppt`, `.xls`): streams of records in a compound file.
//!
//! * `compound`: the streams of a compound file, `bytes`: numbers and texts in them
//! * `properties`: title, author and times of a document
//! * `doc`: the text of a Word document (MS-DOC), `ppt`: of a presentation (MS-PPT)
//! * `xls`: the rows of a workbook (MS-XLS), `shared_strings`: the texts that its cells share
//!
//! **Invariant:** no macro and no embedded object is opened; every position in a file is checked before it is read.

use super::super::skips::{Problem, SkipReason};

mod bytes;
mod compound;
mod doc;
mod ppt;
mod properties;
mod shared_strings;
mod xls;

pub(super) use self::compound::is_compound_file;
pub(crate) use self::compound::{open_compound, read_stream};
pub(super) use self::doc::read_doc;
pub(super) use self::ppt::read_ppt;
pub(super) use self::xls::read_xls;

/// Maximum bytes of the text of a document.
const MAX_TEXT_BYTES: usize = 32 * 1024 * 1024;

/// Returns the reason why a file of an older format is not read, with the command that converts it.
fn older_format(program: &str, extension: &str) -> Problem {
    let text = format!(
        "it was written by {program} 95 or earlier; convert it with `soffice --headless --convert-to {extension} FILE` \
         (LibreOffice)"
    );
    Problem::new(SkipReason::OldFormat, text)
}

/// Returns the reason why a text is not read.
fn too_long() -> Problem {
    Problem::too_large(format!("its text is longer than {MAX_TEXT_BYTES} bytes"))
}
