//! Fits answers into measured budgets.
//!
//! Only this module truncates text. It cuts at grapheme boundaries and measures bytes of JSON, which go over the wire
//! and into a model's context, and tokens if a budget says so. Everything is pure: equal inputs have equal results on
//! every machine, so part 7 of a document can be requested without storing parts 0 to 6.
//!
//! * `budget`, `protection`, `token_budget`, `shaping`: budgets, their configuration, and statistics of an answer
//! * `cut`, `excerpt`: truncation of text
//! * `chunk`, `content`: parts of a document, chunks of a text
//! * `page`: pages of search hits
//! * `rows`, `fields`, `preview`: pages of records, their fields and previews
//! * `tokens`: token counts

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
    bytes_of, characters, chars_before, clip, clip_line, field_len, fields_len, first_bytes,
    first_characters, json_len, last_characters, passage, room_after, value_len,
};
pub use excerpt::shorten;
pub use fields::{
    FIELD_WIDTHS, FieldWidth, FieldsSize, MeasuredFields, NarrowedFields, narrow, shortened, widths_within,
};
pub use page::{PageItem, PagePlan, Pressure, fits_all, plan_page};
pub use preview::{OmittedField, Preview, left_out, preview};
pub use protection::{Contradiction, Estimator, Limit, Limits, Overrides, Protection};
pub use rows::{FitRow, FittedRows, PageBudget, fit_rows};
pub use shaping::{Shaping, Strategy};
pub use token_budget::{TokenBudget, UnsoundBudget};
pub use tokens::{answer_tokens, count_tokens, tokens_within};
