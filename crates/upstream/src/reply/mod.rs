//! Reading of what tools answer. Everything here is a pure function of the answer and the mapping.
//!
//! * `content`: the JSON or the text of an answer, in whatever items and wraps it came
//! * `fields`: names that servers give to ids, titles, texts, links and times
//! * `results`: the results of a search
//! * `document`: the record of a fetch

mod content;
mod document;
mod fields;
mod results;

pub(crate) use content::{ToolError, read};
pub(crate) use document::document;
pub(crate) use results::{NoResults, ResultItem, ResultsPage, results};
