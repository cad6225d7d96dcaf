//! Tables of text, and the rules that all tables share: CSV files, and the sheets of spreadsheets.
//!
//! Titles and notes may stand above the header of a table, and several of its columns may have one name.
//!
//! * `csv`: the importer of CSV files
//! * `columns`: the names, types and key of a CSV file's columns, and rows with too few or too many fields
//! * `sample`: the delimiter, the header and the first rows of a CSV file
//! * `header`: the row that names the columns of any table
//! * `names`: a name of its own for every column
//! * `note`: what stands above a header, or a header without rows, as a record

mod columns;
mod csv;
mod header;
mod names;
mod note;
mod sample;

pub use self::csv::import_csv;
pub(crate) use self::csv::read_table;
pub(crate) use self::header::{MAX_COMPARED_ROWS, RowShape, find_header};
pub(crate) use self::names::unique_names;
pub(crate) use self::note::{NO_ROWS, TableNote, note_text};
