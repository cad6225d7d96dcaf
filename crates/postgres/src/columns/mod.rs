//! Columns of the fields of records, so that filters, aggregates and orders do not parse the JSON of all records.
//!
//! A segment has the records of a stream in a range of versions, in blocks: the values of each column, the texts of a column in
//! pieces, the hashes of the keys and the marks of records that are read as JSON. The id of a row is its version, which every
//! change replaces by a higher one. A reader takes the segments of its transaction's state, leaves out the records whose keys have
//! higher versions, and reads those as JSON. If the numbers of records are not those of the stream, a block is damaged or
//! anything is missing, all records are read.
//!
//! * `block`: bytes with a checksum, and numbers in them
//! * `cells`, `texts`, `marks`: the blocks of a column, of its texts and of the marks
//! * `segment_writer`: the blocks of new records, `rows`: the rows of segments, `outdated`: their outdated records
//! * `build`: builds the columns of streams
//! * `open`: opens columns for a read, `segment`: one segment of them, `loader`: its blocks

mod block;
mod build;
mod cells;
mod loader;
mod marks;
mod open;
mod outdated;
mod rows;
mod segment;
mod segment_writer;
#[cfg(test)]
mod tests;
mod texts;

pub(crate) use build::{BuildLimits, build_columns, warn_not_built};
pub(crate) use open::{ColumnUse, open_columns};
pub(crate) use rows::delete_segments_of_record;
