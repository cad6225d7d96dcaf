//! The words and sequences of words of a record that stand for those of a query, with the fields that have them.

use std::collections::BTreeMap;

use fetchwell_core::fit::first_bytes;
use fetchwell_core::record::{MatchedForm, RecordData};

use crate::lexical::field_texts::texts_of;
use crate::lexical::matching::{ExcerptTerms, SCAN_BYTES};

/// Maximum number of words of a record that are named for one word of a query.
const MAX_FORMS: usize = 5;

/// Maximum number of fields that are named for a word of a record.
const MAX_FIELDS: usize = 8;

/// Returns the words of a record that stand for words of a query, by the number of the query's word. Of a record, as many
/// bytes are compared as for its passage.
pub(in crate::lexical) fn forms_in(
    data: &RecordData,
    terms: &ExcerptTerms,
) -> BTreeMap<usize, Vec<MatchedForm>> {
    let mut found: BTreeMap<usize, Vec<MatchedForm>> = BTreeMap::new();
    let mut left = SCAN_BYTES;
    for (name, text) in texts_of(data) {
        let text = first_bytes(&text, left);
        left -= text.len();
        terms.each_form(text, |slot, form| add(found.entry(slot).or_default(), form, name));
    }
    found
}

/// Adds a word with the field that has it.
fn add(forms: &mut Vec<MatchedForm>, word: &str, field: &str) {
    let at = forms.iter().position(|known| known.form == word).unwrap_or(forms.len());
    if at == forms.len() && at < MAX_FORMS {
        forms.push(MatchedForm { form: word.to_owned(), fields: Vec::new() });
    }
    let Some(MatchedForm { fields, .. }) = forms.get_mut(at) else { return };
    if fields.len() < MAX_FIELDS && !fields.iter().any(|known| known == field) {
        fields.push(field.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn forms_are_named_with_their_fields() {
        let mut terms = ExcerptTerms::default();
        for (word, slot) in [("lease", 0), ("leases", 0), ("harbour", 1), ("7731", 2)] {
            terms.add(word, slot, 1.0);
        }
        terms.add_sequence(&["berth".to_owned(), "7".to_owned()], 3, 0.9);
        let data = json!({
            "subject": "Lease of the harbour",
            "body": "The leases end. Lease, lease!",
            "number": 7731,
            "tags": ["HARBOUR", "other"],
            "title": "Berth 7",
        });
        let data: RecordData = serde_json::from_value(data).unwrap();
        let mut found = Vec::new();
        for (slot, forms) in forms_in(&data, &terms) {
            found.extend(forms.iter().map(|form| format!("{slot} {}: {}", form.form, form.fields.join(" "))));
        }
        let expect = [
            "0 lease: subject body",
            "0 leases: body",
            "1 harbour: subject tags",
            "2 7731: number",
            "3 berth 7: title",
        ];
        assert_eq!(found, expect);
    }

    #[test]
    fn long_records_are_read_in_part_and_lists_are_short() {
        let mut terms = ExcerptTerms::default();
        terms.add("needle", 0, 1.0);
        (0..20).for_each(|at| terms.add(&format!("form{at}"), 1, 1.0));
        let forms: String = (0..20).map(|at| format!("form{at} ")).collect();
        let fields = (0..20).map(|at| (format!("f{at:02}"), json!(forms)));
        let mut data: RecordData = fields.collect();
        data.insert("z".to_owned(), json!(format!("{} needle", "x ".repeat(SCAN_BYTES))));
        let found = forms_in(&data, &terms);
        assert_eq!(found.keys().collect::<Vec<_>>(), [&1]);
        assert_eq!((found[&1].len(), found[&1][0].fields.len()), (MAX_FORMS, MAX_FIELDS));
    }
}
