//! Fits a page of a list into its budget, with items as wide as possible.

use std::sync::Arc;

use fetchwell_core::fit::{
    Estimator, FIELD_WIDTHS, FieldWidth, FieldsSize, FitRow, FittedRows, Limits, MeasuredFields,
    NarrowedFields, PageBudget, Shaping, Strategy, answer_tokens, count_tokens, fit_rows, narrow, value_len,
};
use fetchwell_core::handle::ConnectionId;
use fetchwell_core::record::{FieldPath, Record, RecordData};
use fetchwell_tools::Previews;
use schemars::JsonSchema;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::answer::with_comparison;
use super::fields::{Fields, ID, id_of, selected};
use super::marks;
use super::meta::{BudgetMeta, Details, PageMeta, token_budget};
use crate::answer::Answer;
use crate::error::RequestError;

/// A page of a list.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "PaginatedResponse")]
pub(super) struct PaginatedResponse<Item = RecordData> {
    pub(super) items: Vec<Item>,
    /// Value of `cursor` for the next page; null at the end.
    pub(super) next_cursor: Option<String>,
    pub(super) meta: PageMeta,
}

/// Result of fitting: a page, or the number of records that would fit.
#[derive(Debug)]
pub(super) enum FitResult {
    Page(Answer),
    Rows(usize),
}

/// Input for fitting a page, which runs on a blocking thread.
pub(super) struct PageWork {
    pub(super) records: Vec<Record>,
    pub(super) response: PaginatedResponse,
    pub(super) previews: Arc<Previews>,
    pub(super) budget: PageBudget,
    pub(super) limits: Limits,
    pub(super) estimator: Estimator,
    pub(super) narrowest: FieldWidth,
    /// True if the page has one record that does not fit and all of it was requested.
    pub(super) is_marked: bool,
    pub(super) fields: Fields,
    pub(super) is_summary: bool,
    pub(super) endpoint: String,
    pub(super) connection: Option<ConnectionId>,
    pub(super) compares: bool,
    /// True if the list is paginated.
    pub(super) in_pages: bool,
}

impl PageWork {
    pub(super) fn fit(mut self) -> Result<FitResult, RequestError> {
        let unwritable = |_| RequestError::internal();
        let written = |records: &[Record]| {
            let whole: Vec<&RecordData> = records.iter().map(|record| &record.data).collect();
            serde_json::to_string(&whole).map_err(unwritable)
        };
        // The stored records are measured before fields are selected, for a comparison or because a summary leaves fields out.
        let stored = if self.compares || self.is_summary { written(&self.records)? } else { String::new() };
        let (fields, is_summary) = (self.fields.clone(), self.is_summary);
        let previews = Arc::clone(&self.previews);
        let select = |record| selected(record, &fields, is_summary, &previews);
        self.records = std::mem::take(&mut self.records).into_iter().map(select).collect();
        let selected = if is_summary { String::new() } else { written(&self.records)? };
        let whole = if is_summary { &stored } else { &selected };
        let estimated = self.estimator.tokens(whole, self.limits.hard_cap);
        let budget = token_budget(&self.limits, estimated)?;
        self.response.meta.budget = BudgetMeta::from(&budget);
        // The envelope is measured with these fields, so that they can be added later.
        self.response.meta.summarized = true;
        let details = Details::of_all(self.endpoint.clone(), self.connection.as_ref());
        self.response.meta.details_available = Some(details.clone());
        let envelope = serde_json::to_string(&self.response).map_err(unwritable)?;
        if self.is_marked {
            self.mark(&envelope, &previews);
        }
        let records = std::mem::take(&mut self.records);
        let item = |record| Item::new(record, previews.fields(&record.address));
        let items: Vec<Item<'_>> = records.iter().map(item).collect();
        let is_summary = self.is_summary || self.is_marked;
        let PaginatedResponse { next_cursor, meta, .. } = self.response;
        let mut response = PaginatedResponse { items: Vec::new(), next_cursor, meta };
        let render = |widths: &[FieldWidth]| {
            let summarized = is_summary || widths.iter().any(|width| *width != FieldWidth::Whole);
            response.meta.summarized = summarized;
            response.meta.details_available = summarized.then(|| details.clone());
            response.items = items.iter().zip(widths).map(|(item, width)| item.at(*width)).collect();
            serde_json::to_string(&response).map_err(unwritable)
        };
        let fitted = fit_rows(&items, self.narrowest, self.budget.beside(envelope.len()), render)?;
        match fitted {
            FittedRows::Only(rows) => Ok(FitResult::Rows(rows)),
            FittedRows::All { json, widths, tokens, .. } => {
                let summarized = is_summary || widths.iter().any(|width| *width != FieldWidth::Whole);
                let original = || {
                    let items = match self.estimator {
                        Estimator::O200k => estimated,
                        Estimator::Chars4 => Estimator::O200k.tokens(whole, self.limits.hard_cap),
                    };
                    items + answer_tokens(&envelope)
                };
                let shaping = Shaping {
                    items: widths.len(),
                    strategy: if self.in_pages { Strategy::Paginated } else { Strategy::List },
                    summarized,
                    oversized: budget.summary_mode(),
                    tokens,
                    candidate_tokens: summarized.then(original),
                    ..Shaping::default()
                };
                let compared = self
                    .compares
                    .then(|| (count_tokens(&stored) + count_tokens(&envelope), count_tokens(&json)));
                Ok(FitResult::Page(with_comparison(Answer::with_shaping(json, shaping), compared)))
            }
        }
    }

    /// Replaces the longest values of the records by placeholders, so that they fit beside the envelope.
    fn mark(&mut self, envelope: &str, previews: &Previews) {
        let room = self.budget.beside_json(envelope);
        for record in &mut self.records {
            let declared = previews.fields(&record.address);
            if let Some(marked) = marks::within(record, &record.data, declared, room) {
                record.data = marked;
            }
        }
    }
}

/// A measured record of a list, with the fields that its stream declares for summaries.
struct Item<'a> {
    record: &'a Record,
    declared: &'a [FieldPath],
    fields: MeasuredFields<'a>,
}

/// A record at the width that a list shows. It always has an id.
struct ShownItem<'a> {
    /// Id of the record, if the fields lack one.
    id: Option<Value>,
    fields: Option<NarrowedFields<'a>>,
}

impl Serialize for ShownItem<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(id) = &self.id {
            map.serialize_entry(ID, id)?;
        }
        for (name, value) in self.fields.iter().flat_map(NarrowedFields::pairs) {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'a> Item<'a> {
    fn new(record: &'a Record, declared: &'a [FieldPath]) -> Self {
        Self { record, declared, fields: MeasuredFields::new(&record.data) }
    }

    /// Returns the item at a width.
    fn at(&self, width: FieldWidth) -> ShownItem<'a> {
        let fields = narrow(&self.record.data, width, self.declared).0;
        let has_id = fields.as_ref().is_some_and(|fields| fields.contains(ID));
        ShownItem { id: (!has_id).then(|| id_of(self.record)), fields }
    }

    /// Returns the bytes of an item with these fields, including its comma.
    fn size(&self, fields: FieldsSize) -> usize {
        let braces = "{}".len();
        // An item without fields is an object too.
        let inner = fields.bytes.saturating_sub(braces);
        let id = if fields.has_id {
            0
        } else {
            value_len(&id_of(self.record)) + "\"id\":".len() + usize::from(inner > 0)
        };
        braces + inner + id + ",".len()
    }
}

impl FitRow for Item<'_> {
    fn whole(&self) -> usize {
        let has_id = self.record.data.contains_key(ID);
        self.size(FieldsSize { bytes: self.fields.whole(), left_out: 0, has_id })
    }

    fn widths(&self) -> [usize; FIELD_WIDTHS.len()] {
        self.fields.widths(self.declared).map(|fields| self.size(fields))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use fetchwell_core::fit::bytes_of;
    use fetchwell_core::handle::RecordAddress;

    proptest! {
        #[test]
        fn an_item_takes_what_was_measured(
            values in proptest::collection::vec((".{0,20}|id", ".{0,9}|[a-z\"]{0,3000}"), 0..14),
        ) {
            let address = RecordAddress {
                connection: None,
                stream: "s".parse().unwrap(),
                record: "r\"1".parse().unwrap(),
            };
            let data: RecordData = values.into_iter().map(|(name, text)| (name, json!(text))).collect();
            let record = Record::new(address, data);
            let declared = [FieldPath::field("id")];
            let item = Item::new(&record, &declared);
            let bytes = |width| bytes_of(&item.at(width)) + ",".len();
            prop_assert_eq!(item.whole(), bytes(FieldWidth::Whole));
            prop_assert_eq!(item.widths(), FIELD_WIDTHS.map(bytes));
        }
    }
}
