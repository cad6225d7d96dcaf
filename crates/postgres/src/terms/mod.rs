//! The number of records of each word and stream (its document frequency).
//!
//! The numbers are in runs. A run has changes of numbers by words in ascending order, in blocks of about 2 KB; the number of a word
//! is the sum over all runs. A batch of records adds one run in its own transaction, so the numbers are exact whenever they are
//! read. Small runs are merged into larger ones, so that a search reads few. A merge replaces runs by one with the same sums in
//! one transaction: one that is killed changes nothing, and readers see either.
//!
//! * `lines`: the words of a block as text, `blocks`: blocks that are written, `reader`: those of a run that is read
//! * `write`: adds the run of a batch, `merge`: merges runs, `look_up`: the numbers of words

mod blocks;
mod lines;
mod look_up;
mod merge;
mod reader;
mod write;

pub(crate) use look_up::{Numbers, numbers_beginning_with, numbers_of};
pub(crate) use merge::{delete_terms, drop_earlier_tables, merge_many_terms, merge_terms, warn_unmerged};
pub(crate) use write::{TermChanges, write_terms};
