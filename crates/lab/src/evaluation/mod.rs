//! Measures of search quality: labelled questions, measures of one ranking, and bootstrap intervals over many.
//!
//! Pure: no search is run here and no file is read. A question names its relevant records by their ids; a ranking is
//! the grades of the hits in their order. Kinds of questions count equally, however many questions each has.
//!
//! * `question`: the parser of labelled questions
//! * `measures`: hit@1, hit@10, MRR@10, nDCG@10 and recall@50 of one ranking
//! * `bootstrap`: means of groups with 95 % intervals
//! * `make`: labelled questions made from records
//! * `random`: a pseudo-random number generator with a fixed seed

mod bootstrap;
mod make;
mod measures;
mod question;
mod random;

pub use bootstrap::Estimate;
pub use make::{LabelledQuestion, TextRecord, make_questions};
pub use measures::{MAX_RANK, Measures};
pub use question::{Question, parse_questions};
