//! Sort values as bytes that PostgreSQL compares like the values: missing ones first, then numbers, then texts.

use fetchwell_core::record::SortValue;
use fetchwell_ranking::relational::tables::SortColumn;

/// Maximum number of bytes of a text in a sort key: an entry of an index has at most 2,704 bytes, and a key takes up to
/// 2,048 of them. Texts that begin with the same bytes are ordered by key.
const MAX_TEXT: usize = 512;

const MISSING: u8 = 0;
const NUMBER: u8 = 1;
const TEXT: u8 = 2;

/// Sort value in the database.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SortKey {
    pub(crate) bytes: Vec<u8>,
    /// True if the text is longer than the key.
    pub(crate) is_truncated: bool,
}

impl SortKey {
    pub(crate) fn new(value: &SortValue) -> Self {
        match value {
            SortValue::Missing => Self { bytes: vec![MISSING], is_truncated: false },
            // No row has such a value; this one is in its place.
            SortValue::NonNumber(_) => Self { bytes: vec![MISSING, 1], is_truncated: false },
            SortValue::Number(bits) => {
                let sign = 1 << 63;
                // The order of IEEE 754: negative numbers count downwards.
                let ordered = if bits & sign == 0 { bits | sign } else { !bits };
                let mut bytes = vec![NUMBER];
                bytes.extend(ordered.to_be_bytes());
                Self { bytes, is_truncated: false }
            }
            SortValue::Text(text) => {
                let end = text.floor_char_boundary(MAX_TEXT);
                let mut bytes = vec![TEXT];
                bytes.extend(text.bytes().take(end));
                Self { bytes, is_truncated: end < text.len() }
            }
        }
    }
}

/// Reads a sort value from a column.
pub(crate) fn sort_column(bytes: &[u8]) -> SortColumn<'_> {
    match bytes.split_first() {
        Some((&NUMBER, number)) => number.try_into().map_or(SortColumn::Missing, |number| {
            let ordered = u64::from_be_bytes(number);
            let sign = 1 << 63;
            SortColumn::Number(f64::from_bits(if ordered & sign == 0 { !ordered } else { ordered & !sign }))
        }),
        Some((&TEXT, text)) => str::from_utf8(text).map_or(SortColumn::Missing, SortColumn::Text),
        _ => SortColumn::Missing,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_value() -> impl Strategy<Value = SortValue> {
        prop_oneof![
            Just(SortValue::Missing),
            any::<f64>().prop_filter("JSON has no NaN", |n| n.is_finite()).prop_map(SortValue::number),
            (-9i32..9).prop_map(|n| SortValue::number(n.into())),
            ".{0,8}".prop_map(|text: String| SortValue::text(&text)),
        ]
    }

    proptest! {
        #[test]
        fn keys_have_the_order_of_values(a in any_value(), b in any_value()) {
            prop_assert_eq!(SortKey::new(&a).bytes.cmp(&SortKey::new(&b).bytes), a.cmp(&b));
        }

        #[test]
        fn values_round_trip(a in any_value()) {
            prop_assert_eq!(SortValue::from(sort_column(&SortKey::new(&a).bytes)), a);
        }
    }

    #[test]
    fn long_texts_are_truncated_at_a_character() {
        let key = SortKey::new(&SortValue::Text("é".repeat(MAX_TEXT)));
        assert!(key.is_truncated && key.bytes.len() == MAX_TEXT + 1);
        let odd = SortKey::new(&SortValue::Text(format!("a{}", "é".repeat(MAX_TEXT))));
        assert_eq!(
            SortValue::from(sort_column(&odd.bytes)),
            SortValue::Text(format!("a{}", "é".repeat(255)))
        );
    }
}
