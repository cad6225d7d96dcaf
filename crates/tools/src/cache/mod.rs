//! Caches of a toolbox. None is shared between grants.
//!
//! * `parts`: ends of the parts of long documents.
//! * `previews`: declarations of streams.
//! * `seen_ids`: search hits with an id of the source's own.
//! * `texts`: texts divided into chunks.

mod parts;
mod previews;
mod seen_ids;
mod texts;

pub(crate) use parts::{PartError, PartQuery, Parts};
pub(crate) use previews::KnownPreviews;
pub use previews::Previews;
pub(crate) use seen_ids::{MAX_OPAQUE_ID_BYTES, SeenIds, shortened};
pub(crate) use texts::ChunkedTexts;
pub use texts::{ChunkStart, ChunkedText, TextQuery};
