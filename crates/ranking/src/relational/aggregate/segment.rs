//! Aggregates of the records of a segment, from their columns.

use std::collections::HashMap;

use fetchwell_source::Metric;

use super::super::columns::filter::matching;
use super::super::columns::{BLOCK, Cell, CellBlock, ColumnError, ColumnSegment, each_text};
use super::super::interrupt::Interrupt;
use super::super::predicate::Predicate;
use super::measure::{GroupMeasure, Measures};
use super::refusal::too_many;
use super::slots::{SlotGroups, Slots};
use super::time_bucket::TimeBuckets;

/// Maximum number of groups of a segment. More are counted without columns.
const MAX_SLOTS: usize = 400_000;

/// Fields and filter of an aggregate, with the places of the fields among the opened ones.
#[derive(Debug)]
pub(super) struct SegmentQuery<'a> {
    pub(super) predicate: &'a Predicate,
    pub(super) metric: Metric,
    pub(super) measured: Option<usize>,
    pub(super) grouped: Option<(usize, Option<&'a TimeBuckets>)>,
    pub(super) second: Option<usize>,
    /// Maximum number of groups. More are refused.
    pub(super) max_groups: usize,
}

/// Groups of the records of a segment that pass the filter.
#[derive(Debug)]
pub(super) struct SegmentTotals {
    /// Number of records that pass the filter.
    pub(super) matching: u64,
    pub(super) groups: Vec<SegmentGroup>,
}

/// Records with the same values of the fields of a grouping.
#[derive(Debug)]
pub(super) struct SegmentGroup {
    /// Keys by the first field; one `None` without a grouping.
    pub(super) first: SlotGroups,
    /// Keys by the second field.
    pub(super) second: SlotGroups,
    pub(super) records: u64,
    pub(super) measure: GroupMeasure,
}

/// Slots of pairs of values.
#[derive(Debug, Default)]
struct Pairs {
    slots: HashMap<(u32, u32), u32>,
    pairs: Vec<(u32, u32)>,
}

/// Values of the fields of an aggregate for a block of records.
#[derive(Debug, Default)]
struct Blocks {
    first: CellBlock,
    second: CellBlock,
    measured: CellBlock,
}

impl Blocks {
    fn read(
        &mut self,
        segment: &dyn ColumnSegment,
        query: &SegmentQuery<'_>,
        docs: &[u32],
    ) -> Result<(), ColumnError> {
        let fields = [
            (query.grouped.map(|(field, _)| field), &mut self.first),
            (query.second, &mut self.second),
            (query.measured, &mut self.measured),
        ];
        for (field, block) in fields {
            if let Some(field) = field {
                segment.read(field, docs, block)?;
            }
        }
        Ok(())
    }
}

impl Pairs {
    fn slot(&mut self, first: u32, second: u32) -> u32 {
        let next = u32::try_from(self.pairs.len()).unwrap_or(u32::MAX);
        let slot = *self.slots.entry((first, second)).or_insert(next);
        if slot == next {
            self.pairs.push((first, second));
        }
        slot
    }
}

/// Aggregates the records of a segment.
pub(super) fn read_totals(
    segment: &dyn ColumnSegment,
    query: &SegmentQuery<'_>,
    interrupt: &Interrupt,
) -> Result<SegmentTotals, ColumnError> {
    let docs = matching(segment, query.predicate, interrupt)?;
    let slots = |field: Option<usize>, buckets| {
        let texts = field.map_or(Ok(0), |field| segment.text_count(field))?;
        Ok::<_, ColumnError>(Slots::new(texts, buckets))
    };
    let mut firsts =
        slots(query.grouped.map(|(field, _)| field), query.grouped.and_then(|(_, buckets)| buckets))?;
    let mut seconds = slots(query.second, None)?;
    let mut pairs = Pairs::default();
    let mut measures = Measures::new(query.metric);
    let mut records = Vec::new();
    let mut blocks = Blocks::default();
    for docs in docs.chunks(BLOCK) {
        interrupt.check()?;
        blocks.read(segment, query, docs)?;
        let Blocks { first, second, measured } = &blocks;
        for at in 0..docs.len() {
            let cell = |block: &CellBlock| block.cells.get(at).copied().unwrap_or(Cell::Missing);
            let slot = match (query.grouped, query.second) {
                (None, _) => 0,
                (Some(_), None) => firsts.slot(cell(first), first),
                (Some(_), Some(_)) => {
                    let first = firsts.slot(cell(first), first);
                    pairs.slot(first, seconds.slot(cell(second), second))
                }
            };
            count_in(&mut records, slot);
            if query.measured.is_some() {
                measures.add(slot, cell(measured));
            }
        }
        if firsts.own_groups().max(seconds.own_groups()) > query.max_groups {
            return Err(too_many(query.max_groups).into());
        }
        if firsts.len().max(seconds.len()).max(pairs.pairs.len()) > MAX_SLOTS || measures.is_overfull() {
            return Err(ColumnError::TooMany);
        }
    }
    let matching = docs.len() as u64;
    let pairs = pairs.pairs;
    let first_texts = texts(segment, query.grouped.map(|(field, _)| field), firsts.ordinals(), interrupt)?;
    let second_texts = texts(segment, query.second, seconds.ordinals(), interrupt)?;
    let measured = query.measured.unwrap_or_default();
    let measures = measures.into_groups(records.len(), interrupt, |ordinals, each| {
        each_text(segment, measured, ordinals, interrupt, each)
    })?;
    let firsts = firsts.into_groups(&first_texts, interrupt)?;
    let seconds = seconds.into_groups(&second_texts, interrupt)?;
    let keys = |slot: usize| {
        let (first, second) = match (query.grouped, query.second) {
            (Some(_), Some(_)) => {
                let (first, second) = pairs.get(slot).copied().unwrap_or_default();
                (usize::try_from(first).ok(), usize::try_from(second).ok())
            }
            (Some(_), None) => (Some(slot), None),
            (None, _) => (None, None),
        };
        let keys = |groups: &[SlotGroups], slot: Option<usize>| {
            slot.and_then(|slot| groups.get(slot)).cloned().unwrap_or_else(|| vec![None])
        };
        (keys(&firsts, first), keys(&seconds, second))
    };
    let groups = records.into_iter().zip(measures).enumerate().map(|(slot, (records, measure))| {
        let (first, second) = keys(slot);
        SegmentGroup { first, second, records, measure }
    });
    Ok(SegmentTotals { matching, groups: groups.collect() })
}

fn count_in(records: &mut Vec<u64>, slot: u32) {
    let at = usize::try_from(slot).unwrap_or_default();
    if at >= records.len() {
        records.resize(at + 1, 0);
    }
    if let Some(count) = records.get_mut(at) {
        *count += 1;
    }
}

/// Returns the texts of ordinals of a field.
fn texts(
    segment: &dyn ColumnSegment,
    field: Option<usize>,
    mut ordinals: Vec<u32>,
    interrupt: &Interrupt,
) -> Result<HashMap<u32, String>, ColumnError> {
    let mut texts = HashMap::new();
    let Some(field) = field else { return Ok(texts) };
    ordinals.sort_unstable();
    ordinals.dedup();
    each_text(segment, field, &ordinals, interrupt, |ordinal, text| {
        texts.insert(ordinal, text.to_owned());
    })?;
    Ok(texts)
}
