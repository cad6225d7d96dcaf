//! Groups of records in the columns of a segment: each different value gets a slot.
//!
//! The keys of a slot are made once, after all records were counted.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use fetchwell_source::SourceError;
use serde_json::Value;

use super::super::columns::time::{clock_millis, millis};
use super::super::columns::{Cell, CellBlock};
use super::super::interrupt::Interrupt;
use super::group_key::GroupKey;
use super::time_bucket::{TimeBucket, TimeBuckets};

/// Slots of the values of one field.
#[derive(Debug)]
pub(super) struct Slots<'a> {
    /// Buckets of a grouping by time.
    buckets: Option<&'a TimeBuckets>,
    /// Slot of each text by its ordinal, or `NONE`.
    texts: Vec<u32>,
    values: HashMap<(u8, u64), u32>,
    lists: HashMap<Vec<(u8, u64)>, u32>,
    /// Slots of spans of milliseconds in UTC.
    spans: Spans,
    /// Slots of spans of milliseconds on the clock of the zone.
    clock_spans: Spans,
    /// Slots of buckets.
    by_bucket: HashMap<TimeBucket, u32>,
    keys: Vec<SlotKey>,
    /// Number of texts and whole numbers. Without buckets, each of them is a group of its own.
    own: usize,
    /// Number of floating point numbers, which may be in the groups of whole numbers.
    parts: usize,
}

/// Marks a text without a slot.
const NONE: u32 = u32::MAX;

/// Slots of spans of milliseconds.
#[derive(Debug)]
struct Spans {
    /// End and slot of each span, by its start.
    by_start: BTreeMap<i64, (i64, u32)>,
    /// Start, end and slot of the span that was found last.
    last: (i64, i64, u32),
}

impl Default for Spans {
    fn default() -> Self {
        Self { by_start: BTreeMap::new(), last: (0, 0, NONE) }
    }
}

impl Spans {
    fn find(&mut self, millis: i64) -> Option<u32> {
        let (start, end, slot) = self.last;
        if (start..end).contains(&millis) {
            return Some(slot);
        }
        let (start, (end, slot)) = self.by_start.range(..=millis).next_back()?;
        (millis < *end).then(|| {
            self.last = (*start, *end, *slot);
            *slot
        })
    }

    fn add(&mut self, span: Range<i64>, slot: u32) {
        self.by_start.insert(span.start, (span.end, slot));
        self.last = (span.start, span.end, slot);
    }
}

/// Value of a slot.
#[derive(Debug)]
enum SlotKey {
    Cell(Cell),
    List(Vec<Cell>),
    Bucket(TimeBucket),
}

/// Keys of the groups that a record of a slot is in.
pub(super) type SlotGroups = Vec<Option<GroupKey>>;

impl<'a> Slots<'a> {
    /// Creates slots for a field with `text_count` texts.
    pub(super) fn new(text_count: usize, buckets: Option<&'a TimeBuckets>) -> Self {
        Self {
            buckets,
            texts: vec![NONE; text_count],
            values: HashMap::new(),
            lists: HashMap::new(),
            spans: Spans::default(),
            clock_spans: Spans::default(),
            by_bucket: HashMap::new(),
            keys: Vec::new(),
            own: 0,
            parts: 0,
        }
    }

    /// Returns the number of slots.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns a number of groups that the values certainly have.
    pub(super) fn own_groups(&self) -> usize {
        if self.buckets.is_some() { 0 } else { self.own.max(self.parts) }
    }

    /// Returns the slot of a value.
    pub(super) fn slot(&mut self, cell: Cell, block: &CellBlock) -> u32 {
        match (cell, self.buckets) {
            (Cell::Text(ordinal), _) => self.text_slot(ordinal),
            (Cell::Time(number), Some(buckets)) => self.time_slot(number, buckets),
            (Cell::List(_), Some(_)) => self.value_slot(Cell::Missing),
            (Cell::List(list), None) => {
                let items = block.list(list);
                let identity: Vec<_> = items.iter().map(|item| item.identity()).collect();
                let next = next_slot(&self.keys);
                let slot = *self.lists.entry(identity).or_insert(next);
                if slot == next {
                    self.keys.push(SlotKey::List(items.to_vec()));
                }
                slot
            }
            _ => self.value_slot(cell),
        }
    }

    fn text_slot(&mut self, ordinal: u32) -> u32 {
        let next = next_slot(&self.keys);
        let Some(slot) = usize::try_from(ordinal).ok().and_then(|at| self.texts.get_mut(at)) else {
            return self.value_slot(Cell::Text(ordinal));
        };
        if *slot == NONE {
            *slot = next;
            self.own += 1;
            self.keys.push(SlotKey::Cell(Cell::Text(ordinal)));
        }
        *slot
    }

    fn value_slot(&mut self, cell: Cell) -> u32 {
        let next = next_slot(&self.keys);
        let slot = *self.values.entry(cell.identity()).or_insert(next);
        if slot == next {
            self.own += usize::from(matches!(cell, Cell::Whole(_) | Cell::Time(_) | Cell::Text(_)));
            self.parts += usize::from(matches!(cell, Cell::Part(_)));
            self.keys.push(SlotKey::Cell(cell));
        }
        slot
    }

    /// Returns the slot of the bucket of a time.
    fn time_slot(&mut self, number: i64, buckets: &TimeBuckets) -> u32 {
        let utc = millis(number);
        let at = utc.unwrap_or_else(|| clock_millis(number));
        let spans = if utc.is_some() { &mut self.spans } else { &mut self.clock_spans };
        if let Some(slot) = spans.find(at) {
            return slot;
        }
        let found = if utc.is_some() { buckets.span_at(at) } else { buckets.span_on_the_clock(at) };
        let Some((span, bucket)) = found else { return self.value_slot(Cell::Time(number)) };
        let next = next_slot(&self.keys);
        let slot = *self.by_bucket.entry(bucket).or_insert(next);
        if slot == next {
            self.keys.push(SlotKey::Bucket(bucket));
        }
        spans.add(span, slot);
        slot
    }

    /// Returns the ordinals of the texts of all slots.
    pub(super) fn ordinals(&self) -> Vec<u32> {
        let mut ordinals = Vec::new();
        for key in &self.keys {
            match key {
                SlotKey::Cell(Cell::Text(ordinal)) => ordinals.push(*ordinal),
                SlotKey::List(items) => ordinals.extend(items.iter().filter_map(|item| match item {
                    Cell::Text(ordinal) => Some(*ordinal),
                    _ => None,
                })),
                SlotKey::Cell(_) | SlotKey::Bucket(_) => {}
            }
        }
        ordinals
    }

    /// Returns the keys of each slot. `texts` has the texts of all ordinals.
    pub(super) fn into_groups(
        self,
        texts: &HashMap<u32, String>,
        interrupt: &Interrupt,
    ) -> Result<Vec<SlotGroups>, SourceError> {
        let text_of = |ordinal: u32| texts.get(&ordinal).map(String::as_str);
        let buckets = self.buckets;
        let groups = |key: SlotKey| match key {
            SlotKey::Bucket(bucket) => vec![Some(GroupKey::Time(bucket))],
            SlotKey::List(items) => {
                GroupKey::all_of(&Value::Array(items.iter().filter_map(|item| item.value(text_of)).collect()))
            }
            SlotKey::Cell(cell) => match (cell.value(text_of), buckets) {
                (None, _) => vec![None],
                (Some(value), Some(buckets)) => vec![buckets.bucket_of(&value).map(GroupKey::Time)],
                (Some(value), None) => GroupKey::all_of(&value),
            },
        };
        let keys = self.keys.into_iter();
        keys.map(|key| interrupt.check().map(|()| groups(key))).collect()
    }
}

fn next_slot(keys: &[SlotKey]) -> u32 {
    u32::try_from(keys.len()).unwrap_or(NONE)
}
