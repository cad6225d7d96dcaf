//! Groups of records in the columns of a segment: each different value gets a slot.
//!
//! The keys of a slot are made once, after all records were counted.

use std::collections::{BTreeMap, HashMap};

use fetchwell_source::SourceError;
use serde_json::Value;

use super::super::columns::time::{floor, millis};
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
    /// Slots of spans of milliseconds, each with the end of its span, by their start.
    spans: BTreeMap<i64, (i64, u32)>,
    /// Start, end and slot of the span of the last timestamp.
    last_span: (i64, i64, u32),
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
            spans: BTreeMap::new(),
            last_span: (0, 0, NONE),
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
            (Cell::Time(number), Some(buckets)) => match millis(number) {
                Some(millis) => self.time_slot(cell, millis, buckets),
                None => self.value_slot(Cell::Time(floor(number, buckets.span_on_the_clock()))),
            },
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

    /// Returns the slot of the bucket of a timestamp.
    fn time_slot(&mut self, cell: Cell, millis: i64, buckets: &TimeBuckets) -> u32 {
        let (start, end, slot) = self.last_span;
        if (start..end).contains(&millis) {
            return slot;
        }
        if let Some((start, (end, slot))) = self.spans.range(..=millis).next_back()
            && millis < *end
        {
            self.last_span = (*start, *end, *slot);
            return *slot;
        }
        let Some((span, bucket)) = buckets.span_at(millis) else { return self.value_slot(cell) };
        let next = next_slot(&self.keys);
        let slot = *self.by_bucket.entry(bucket).or_insert(next);
        if slot == next {
            self.keys.push(SlotKey::Bucket(bucket));
        }
        self.spans.insert(span.start, (span.end, slot));
        self.last_span = (span.start, span.end, slot);
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
