//! Members of an object in a response.
//!
//! A list has many objects with few members. Comparing a few names takes less time than hashing each of them.

use fetchwell_core::record::RecordData;
use serde::de::MapAccess;
use serde_json::Value;

use super::tolerant::{Lookup, Tolerant};

/// Maximum number of members that are compared one by one. A server may send an object with millions of them.
const MAX_FEW: usize = 24;

/// Members of an object in their order, each name once.
#[derive(Debug)]
pub(super) enum Members {
    Few(Vec<(String, Value)>),
    Many(RecordData),
}

impl Default for Members {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl From<RecordData> for Members {
    fn from(fields: RecordData) -> Self {
        Self::Many(fields)
    }
}

impl Lookup for Members {
    fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Self::Few(members) => members.iter().find(|(own, _)| own == name).map(|(_, value)| value),
            Self::Many(fields) => fields.get(name),
        }
    }
}

impl Members {
    /// Adds a member. The last value of a name counts.
    pub(super) fn insert(&mut self, name: String, value: Value) {
        match self {
            Self::Few(members) => {
                if let Some((_, own)) = members.iter_mut().find(|(own, _)| *own == name) {
                    *own = value;
                } else if members.len() < MAX_FEW {
                    members.push((name, value));
                } else {
                    let mut fields: RecordData = std::mem::take(members).into_iter().collect();
                    fields.insert(name, value);
                    *self = Self::Many(fields);
                }
            }
            Self::Many(fields) => {
                fields.insert(name, value);
            }
        }
    }

    /// Removes a member. The last one takes its place.
    pub(super) fn remove(&mut self, name: &str) -> Option<Value> {
        match self {
            Self::Few(members) => {
                let index = members.iter().position(|(own, _)| own == name)?;
                Some(members.swap_remove(index).1)
            }
            Self::Many(fields) => fields.swap_remove(name),
        }
    }

    /// Returns true if there is a member of this name.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns true if all names satisfy a condition.
    pub(super) fn all_names(&self, mut is_true: impl FnMut(&str) -> bool) -> bool {
        match self {
            Self::Few(members) => members.iter().all(|(name, _)| is_true(name)),
            Self::Many(fields) => fields.keys().all(|name| is_true(name)),
        }
    }

    /// Returns the members whose names satisfy a condition.
    pub(super) fn into_fields(self, is_kept: impl Fn(&str) -> bool) -> RecordData {
        match self {
            Self::Few(members) => members.into_iter().filter(|(name, _)| is_kept(name)).collect(),
            Self::Many(mut fields) => {
                fields.retain(|name, _| is_kept(name));
                fields
            }
        }
    }
}

/// Item of a list: the members of an object, or `None` for any other value.
#[derive(Debug, Default)]
pub(super) struct Item(pub(super) Option<Members>);

impl<'de> Tolerant<'de> for Item {
    fn from_map<A: MapAccess<'de>>(mut fields: A) -> Result<Self, A::Error> {
        let mut members = Members::default();
        while let Some((name, value)) = fields.next_entry()? {
            members.insert(name, value);
        }
        Ok(Self(Some(members)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::tolerant::Any;
    use super::*;

    fn members(text: &str) -> Members {
        serde_json::from_str::<Any<Item>>(text).unwrap().0.0.unwrap()
    }

    proptest! {
        #[test]
        fn members_are_those_of_a_map(names in prop::collection::vec("[a-z]{1,2}", 0..60), removed in "[a-z]{1,2}") {
            let written: Vec<String> = names.iter().enumerate().map(|(n, name)| format!(r#""{name}":{n}"#)).collect();
            let text = format!("{{{}}}", written.join(","));
            let mut map: RecordData = serde_json::from_str(&text).unwrap();
            let mut members = members(&text);
            prop_assert_eq!(members.get(&removed), map.get(&removed));
            prop_assert_eq!(members.remove(&removed), map.swap_remove(&removed));
            prop_assert!(!members.contains(&removed));
            let fields = members.into_fields(|_| true);
            prop_assert_eq!(fields.iter().collect::<Vec<_>>(), map.iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn other_values_have_no_members() {
        for value in
            [json!(null), json!(true), json!(-1), json!(1), json!(0.5), json!("x"), json!([{"a": [1]}])]
        {
            assert!(serde_json::from_value::<Any<Item>>(value.clone()).unwrap().0.0.is_none(), "{value}");
        }
    }
}
