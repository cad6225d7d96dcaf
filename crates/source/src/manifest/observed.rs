//! The fields that the records of a stream were seen to have.

use std::collections::{BTreeSet, HashMap};

use fetchwell_core::record::RecordData;

use super::kinds::{Kinds, MAX_FIELDS};

/// Fields of a stream with the types of their values, and those that are to be saved.
#[derive(Debug, Default)]
pub struct ObservedFields {
    fields: Vec<ObservedField>,
    /// Place of each field by its name.
    places: HashMap<String, usize>,
    /// Fields with types that are new since the last save.
    unsaved: BTreeSet<usize>,
}

/// Field with the types of its values.
#[derive(Debug, Clone)]
pub struct ObservedField {
    /// Name of the field.
    pub name: String,
    /// Kinds of the values that the field has.
    pub kinds: Kinds,
}

impl ObservedFields {
    /// Creates the fields of a stream from those that were saved.
    pub fn new(saved: HashMap<String, Kinds>) -> Self {
        let mut observed = Self::default();
        saved.into_iter().for_each(|(name, kinds)| observed.push(name, kinds));
        observed
    }

    /// Adds the fields of a record, as far as there is room for new ones.
    pub fn observe(&mut self, data: &RecordData) {
        for (at, (name, value)) in data.iter().enumerate() {
            let kinds = Kinds::from_value(value);
            // Most records of a stream have the same fields in the same order.
            let is_there = self.fields.get(at).is_some_and(|known| known.name == *name);
            let place = if is_there { Some(at) } else { self.places.get(name).copied() };
            match place {
                Some(at) => {
                    if let Some(known) = self.fields.get_mut(at).filter(|known| !known.kinds.covers(kinds)) {
                        known.kinds.merge(kinds);
                        self.unsaved.insert(at);
                    }
                }
                None if self.fields.len() < MAX_FIELDS => {
                    self.unsaved.insert(self.fields.len());
                    self.push(name.clone(), kinds);
                }
                None => {}
            }
        }
    }

    /// Returns the fields that are new since the last call.
    pub fn take_unsaved(&mut self) -> Vec<ObservedField> {
        let unsaved = std::mem::take(&mut self.unsaved);
        unsaved.into_iter().filter_map(|at| self.fields.get(at).cloned()).collect()
    }

    fn push(&mut self, name: String, kinds: Kinds) {
        self.places.insert(name.clone(), self.fields.len());
        self.fields.push(ObservedField { name, kinds });
    }
}
