//! Places of the postings of words that were looked up lately, for all searches of the process.
//!
//! A lookup decodes half a block of a dictionary, and a search makes some dozens: of its words, their forms and spellings, most
//! of which no record has. Segments do not change, so what was found holds as long as the segment exists.

use std::sync::LazyLock;

use fetchwell_core::lru::{LruCache, LruLimits};
use tantivy::index::SegmentId;
use tantivy::postings::TermInfo;
use tantivy::{InvertedIndexReader, TantivyError, Term};

/// Maximum number of words that are remembered, each with some 200 bytes.
const MAX_TERMS: u64 = 8_192;

/// Maximum length in bytes of a word that is remembered.
const MAX_BYTES: usize = 64;

static KNOWN: LazyLock<LruCache<(SegmentId, Term), Option<TermInfo>>> =
    LazyLock::new(|| LruCache::new(LruLimits::new(MAX_TERMS)));

/// Returns where the postings of a word are in a segment; `None` if it has none.
pub(super) fn term_info(
    segment: SegmentId,
    term: &Term,
    index: &InvertedIndexReader,
) -> Result<Option<TermInfo>, TantivyError> {
    if term.serialized_value_bytes().len() > MAX_BYTES {
        return Ok(index.get_term_info(term)?);
    }
    let key = (segment, term.clone());
    if let Some(known) = KNOWN.get(&key) {
        return Ok(known);
    }
    let info = index.get_term_info(term)?;
    KNOWN.insert(key, info.clone());
    Ok(info)
}
