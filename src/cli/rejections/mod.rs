//! Output of imports and synchronizations while they run.
//!
//! * `progress`: the progress on a terminal
//! * `rejected`: rejected records and files, and their report file

mod progress;
mod rejected;

pub(super) use self::progress::Progress;
pub(super) use self::rejected::{Rejections, ReportFile};
