//! Members of an object in a response.
//!
//! A list has many objects with few members. Comparing a few names takes less time than hashing each of them.

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::tolerant::Lookup;
use crate::record::RecordData;

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
#[derive(Debug)]
pub(super) struct Item(pub(super) Option<Members>);

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ItemVisitor)
    }
}

struct ItemVisitor;

impl<'de> Visitor<'de> for ItemVisitor {
    type Value = Item;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Item, A::Error> {
        let mut members = Members::default();
        while let Some((name, value)) = map.next_entry()? {
            members.insert(name, value);
        }
        Ok(Item(Some(members)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Item, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Item(None))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Item, E> {
        Ok(Item(None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Item, E> {
        Ok(Item(None))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Item, E> {
        Ok(Item(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Item, E> {
        Ok(Item(None))
    }

    fn visit_str<E>(self, _: &str) -> Result<Item, E> {
        Ok(Item(None))
    }

    fn visit_unit<E>(self) -> Result<Item, E> {
        Ok(Item(None))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn members(text: &str) -> Members {
        serde_json::from_str::<Item>(text).unwrap().0.unwrap()
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
            assert!(serde_json::from_value::<Item>(value.clone()).unwrap().0.is_none(), "{value}");
        }
    }
}
