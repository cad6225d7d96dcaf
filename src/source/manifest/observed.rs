//! The fields that the records of a stream were seen to have.

use std::collections::HashMap;

use super::kinds::{Kinds, MAX_FIELDS};
use crate::record::RecordData;

/// Fields of a stream with the types of their values, and those that are to be saved.
#[derive(Debug, Default)]
pub(in crate::source) struct ObservedFields {
    fields: HashMap<String, Kinds>,
    /// Fields with types that are new since the last save.
    unsaved: Vec<String>,
}

/// Field with the types of its values.
#[derive(Debug)]
pub(in crate::source) struct ObservedField {
    pub(in crate::source) name: String,
    pub(in crate::source) kinds: Kinds,
}

impl ObservedFields {
    /// Creates the fields of a stream from those that were saved.
    pub(in crate::source) fn new(saved: HashMap<String, Kinds>) -> Self {
        Self { fields: saved, unsaved: Vec::new() }
    }

    /// Adds the fields of a record, as far as there is room for new ones.
    pub(in crate::source) fn observe(&mut self, data: &RecordData) {
        let mut room = MAX_FIELDS.saturating_sub(self.fields.len());
        for (name, value) in data {
            let kind = Kinds::from_value(value);
            match self.fields.get_mut(name) {
                Some(known) if known.covers(kind) => {}
                Some(known) => {
                    known.merge(kind);
                    self.unsaved.push(name.clone());
                }
                None if room > 0 => {
                    room -= 1;
                    self.fields.insert(name.clone(), kind);
                    self.unsaved.push(name.clone());
                }
                None => {}
            }
        }
    }

    /// Returns the fields that are new since the last call.
    pub(in crate::source) fn take_unsaved(&mut self) -> Vec<ObservedField> {
        let kinds = |name: &String| self.fields.get(name).copied().unwrap_or_default();
        let unsaved = std::mem::take(&mut self.unsaved);
        unsaved.into_iter().map(|name| ObservedField { kinds: kinds(&name), name }).collect()
    }
}
