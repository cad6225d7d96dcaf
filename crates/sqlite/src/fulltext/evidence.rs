//! Reads where candidates have the words of a query, from the postings of the index.

use std::collections::HashMap;

use fetchwell_ranking::lexical::expansion::{Lookups, Sequence};
use fetchwell_ranking::lexical::ranking::RankedRecord;
use fetchwell_ranking::lexical::scoring::Evidence;
use fetchwell_ranking::lexical::selection::Likeness;
use tantivy::postings::Postings;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, Searcher, SegmentOrdinal, SegmentReader, TERMINATED, TantivyError, Term};

use super::candidates::Candidate;
use super::dictionary::Dictionary;
use super::index::Fields;

/// Maximum number of positions of one word in one record that are compared: the first ones.
const MAX_POSITIONS: usize = 256;

/// Maximum number of occurrences of one word in one record of which positions are read.
const MAX_READ_POSITIONS: u32 = 4_096;

/// Reads the evidence of candidates, in their order, with their times if `has_times` is true.
pub(super) fn read_evidence(
    dictionary: &Dictionary<'_>,
    fields: Fields,
    lookups: &Lookups,
    candidates: &[Candidate],
    has_times: bool,
) -> Result<Vec<Evidence>, TantivyError> {
    let mut by_segment: HashMap<u32, Vec<(u32, usize)>> = HashMap::new();
    for (number, candidate) in candidates.iter().enumerate() {
        let address = candidate.address;
        by_segment.entry(address.segment_ord).or_default().push((address.doc_id, number));
    }
    let searcher = dictionary.searcher;
    let average = average_length(searcher, fields)?;
    let mut evidence: Vec<Option<Evidence>> = vec![None; candidates.len()];
    for (segment, mut documents) in by_segment {
        documents.sort_unstable();
        let reader = searcher.segment_reader(segment);
        // Opening a column reads all of it.
        let has_times = has_times && fields.has_columns();
        let times = if has_times { reader.fast_fields().i64("time").ok() } else { None };
        let mut read = columns(reader, fields, average, lookups.words.len(), &documents)?;
        for ((document, _), read) in documents.iter().zip(&mut read) {
            read.time = times.as_ref().and_then(|times| times.first(*document));
        }
        add_matches(dictionary, segment, fields, lookups, &documents, &mut read)?;
        for sequence in &lookups.sequences {
            add_sequence(dictionary, segment, fields, sequence, &documents, &mut read)?;
        }
        for ((_, number), read) in documents.into_iter().zip(read) {
            if let Some(slot) = evidence.get_mut(number) {
                *slot = Some(read);
            }
        }
    }
    Ok(evidence.into_iter().flatten().collect())
}

/// Returns the average number of words of a record.
#[expect(clippy::cast_precision_loss, reason = "an average")]
fn average_length(searcher: &Searcher, fields: Fields) -> Result<f32, TantivyError> {
    let (mut words, mut records) = (0, 0);
    for segment in searcher.segment_readers() {
        words += segment.inverted_index(fields.text)?.total_num_tokens();
        records += u64::from(segment.max_doc());
    }
    Ok((words as f32 / records.max(1) as f32).max(1.0))
}

/// Reads the columns of some documents of a segment.
#[expect(clippy::cast_precision_loss, reason = "a number of words")]
fn columns(
    segment: &SegmentReader,
    fields: Fields,
    average: f32,
    words: usize,
    documents: &[(u32, usize)],
) -> Result<Vec<Evidence>, TantivyError> {
    let columns = segment.fast_fields();
    let lengths = segment.get_fieldnorms_reader(fields.text)?;
    let rows = columns.u64("record")?;
    let extra = if fields.has_columns() {
        let column = |name| columns.u64(name);
        Some((column("stream")?, column("connection")?, column("similarity")?, column("title_words")?))
    } else {
        None
    };
    let read = documents.iter().map(|(document, _)| {
        let value = |column: &tantivy::columnar::Column<u64>| column.first(*document).unwrap_or_default();
        let record = RankedRecord {
            matches: vec![Default::default(); words],
            relative_length: lengths.fieldnorm(*document) as f32 / average,
            title_words: extra.as_ref().map_or(0, |extra| u32::try_from(value(&extra.3)).unwrap_or(0)),
        };
        Evidence {
            row: i64::try_from(value(&rows)).unwrap_or_default(),
            stream: extra.as_ref().map_or(0, |extra| value(&extra.0)),
            time: None,
            likeness: extra
                .as_ref()
                .map(|extra| Likeness { connection: value(&extra.1), similarity: value(&extra.2) }),
            record,
        }
    });
    Ok(read.collect())
}

/// Adds the matches of all words to the evidence of some documents of a segment.
fn add_matches(
    dictionary: &Dictionary<'_>,
    segment: SegmentOrdinal,
    fields: Fields,
    lookups: &Lookups,
    documents: &[(u32, usize)],
    evidence: &mut [Evidence],
) -> Result<(), TantivyError> {
    let inverted = dictionary.searcher.segment_reader(segment).inverted_index(fields.text)?;
    for (number, lookup) in lookups.words.iter().enumerate() {
        for alternative in &lookup.alternatives {
            let is_common = !lookups.has_places(alternative);
            let option = if is_common {
                IndexRecordOption::WithFreqs
            } else {
                IndexRecordOption::WithFreqsAndPositions
            };
            let term = Term::from_field_text(fields.text, &alternative.text);
            let infos = dictionary.infos(&term)?;
            let Some(info) = infos.get(segment as usize).and_then(Option::as_ref) else { continue };
            let mut postings = inverted.read_postings_from_terminfo(info, option)?;
            let mut positions = Vec::new();
            for ((document, _), evidence) in documents.iter().zip(evidence.iter_mut()) {
                if postings.doc() == TERMINATED {
                    break;
                }
                if postings.doc() > *document || postings.seek(*document) != *document {
                    continue;
                }
                let title_words = evidence.record.title_words;
                let Some(matches) = evidence.record.matches.get_mut(number) else { continue };
                let frequency = postings.term_freq();
                matches.frequency += alternative.quality * to_float(frequency);
                matches.quality = matches.quality.max(alternative.quality);
                if is_common || frequency > MAX_READ_POSITIONS {
                    continue;
                }
                postings.positions(&mut positions);
                positions.truncate(MAX_POSITIONS);
                if positions.first().is_some_and(|first| *first < title_words) {
                    matches.title_quality = matches.title_quality.max(alternative.quality);
                }
                let is_first = matches.positions.is_empty();
                matches.positions.extend_from_slice(&positions);
                if !is_first {
                    matches.positions.sort_unstable();
                    matches.positions.dedup();
                }
            }
        }
    }
    Ok(())
}

/// Adds the matches of a sequence to the evidence of some documents of a segment.
fn add_sequence(
    dictionary: &Dictionary<'_>,
    segment: SegmentOrdinal,
    fields: Fields,
    sequence: &Sequence,
    documents: &[(u32, usize)],
    evidence: &mut [Evidence],
) -> Result<(), TantivyError> {
    let inverted = dictionary.searcher.segment_reader(segment).inverted_index(fields.text)?;
    let mut words = Vec::with_capacity(sequence.words.len());
    for word in &sequence.words {
        let infos = dictionary.infos(&Term::from_field_text(fields.text, word))?;
        let Some(info) = infos.get(segment as usize).and_then(Option::as_ref) else { return Ok(()) };
        words.push(inverted.read_postings_from_terminfo(info, IndexRecordOption::WithFreqsAndPositions)?);
    }
    for ((document, _), evidence) in documents.iter().zip(evidence.iter_mut()) {
        let mut places = vec![Vec::new(); words.len()];
        let has_words = words.iter_mut().zip(&mut places).all(|(postings, places)| {
            let at = postings.doc();
            let is_there = at == *document || at < *document && postings.seek(*document) == *document;
            if is_there && postings.term_freq() <= MAX_READ_POSITIONS {
                postings.positions(places);
            }
            is_there
        });
        let RankedRecord { matches, title_words, .. } = &mut evidence.record;
        if let Some(matches) = matches.get_mut(sequence.slot).filter(|_| has_words) {
            let places: Vec<(u32, &[u32])> = (0..).zip(places.iter().map(Vec::as_slice)).collect();
            matches.add_sequence(&places, sequence.quality, *title_words);
        }
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "a number of occurrences")]
fn to_float(count: u32) -> f32 {
    count as f32
}
