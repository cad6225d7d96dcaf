//! Files and records that an import does not take: left out by design, or not readable.
//!
//! * `reason`: the reasons, each with its remedy
//! * `problem`: a reason with a text for people, which readers return as their error
//! * `counts`: the counts of an import by reason

mod counts;
mod problem;
mod reason;

pub use self::counts::SkipCounts;
pub use self::problem::Problem;
pub use self::reason::SkipReason;
