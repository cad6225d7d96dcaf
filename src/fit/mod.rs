//! Fitting answers into measured budgets.
//!
//! This is the only room that cuts text. It cuts at grapheme boundaries, measures in bytes of JSON
//! (what goes over the wire and into a model's context) and, where a budget says so, in tokens. All
//! of it is pure: the same input gives the same cut on every machine, which is what lets part 7 of a
//! document be asked for without remembering parts 0 to 6.

pub mod budget;
mod chunk;
mod content;
mod cut;
mod excerpt;
mod fields;
mod page;
mod preview;
mod protection;
mod rows;
mod shaping;
mod token_budget;
mod tokens;

pub use chunk::{ChunkBudget, chunk_end};
pub use content::{CHUNK_BYTES, Chunk, ContentChunks, ContentKind};
pub use cut::{
    bytes_of, characters, chars_before, clip, field_len, fields_len, json_len, passage, value_len,
};
pub use excerpt::shorten;
pub use fields::{
    FIELD_WIDTHS, FieldWidth, FieldsSize, MeasuredFields, NarrowedFields, narrow, shortened, widths_within,
};
pub use page::{PageItem, PagePlan, Pressure, plan_page};
pub use preview::{LeftOut, Preview, left_out, preview};
pub use protection::{Contradiction, Estimator, Limit, Limits, Overrides, Protection};
pub use rows::{FitRow, FittedRows, PageBudget, fit_rows};
pub use shaping::{Shaping, Strategy};
pub use token_budget::{TokenBudget, UnsoundBudget};
pub use tokens::{count_tokens, tokens_within};
