//! Samples, recorded replies and measures of searches, for the commands `demo`, `budget`, `eval` and `bench`, and for tests.
//!
//! * `evaluation`: questions with labels, measures of rankings, and questions made of records
//! * `sample`: the import of sample data, `hostaway`: a connector for holiday rentals and its sample
//! * `recorded`: a source that answers with recorded replies of a record server
//!
//! Uses `callers`, `connectors`, `core`, `pdpp`, `source` and `state`.

pub mod evaluation;
pub mod hostaway;
pub mod recorded;
pub mod sample;
