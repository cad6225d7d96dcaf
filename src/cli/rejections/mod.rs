//! Output of imports and synchronizations while they run.
//!
//! * `progress`: the progress on a terminal
//! * `rejected`: rejected records and files, and their report file
//! * `skips`: counts by reason, with remedies

mod progress;
mod rejected;
mod skips;

pub(super) use self::progress::Progress;
pub(super) use self::rejected::{Rejections, ReportFile};
pub(super) use self::skips::{EXIT_CODES, SkipFields, note_skips};
