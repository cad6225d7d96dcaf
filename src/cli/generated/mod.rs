//! Files that are generated from the command line.
//!
//! * `completions`: completion scripts of shells
//! * `man`: manual pages

mod completions;
mod man;

pub(super) use self::completions::Completions;
pub(super) use self::man::Man;
