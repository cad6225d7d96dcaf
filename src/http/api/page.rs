//! Fits a page of a list into its budget, with items as wide as possible.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::answer::Answer;
use super::fields::{Fields, selected, with_id};
use super::marks;
use super::meta::{BudgetMeta, Details, PageMeta, token_budget};
use crate::fit::{
    Estimator, FIELD_WIDTHS, FieldWidth, FitRow, FittedRows, Limits, PageBudget, Shaping, Strategy, bytes_of,
    count_tokens, fit_rows, narrow, widths_of,
};
use crate::handle::ConnectionId;
use crate::http::v1::ApiError;
use crate::record::{FieldPath, Record, RecordData};
use crate::tools::Previews;

/// A page of a list.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PaginatedResponse {
    pub(super) items: Vec<RecordData>,
    /// Goes on with `cursor`; null at the end.
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
    pub(super) fn fit(mut self) -> Result<FitResult, ApiError> {
        let unwritable = |_| ApiError::internal();
        let written = |records: &[Record]| {
            let whole: Vec<&RecordData> = records.iter().map(|record| &record.data).collect();
            serde_json::to_string(&whole).map_err(unwritable)
        };
        // For a comparison, the stored records are measured before fields are selected.
        let stored = if self.compares { written(&self.records)? } else { String::new() };
        let (fields, is_summary) = (self.fields.clone(), self.is_summary);
        let previews = Arc::clone(&self.previews);
        let select = |record| selected(record, &fields, is_summary, &previews);
        self.records = std::mem::take(&mut self.records).into_iter().map(select).collect();
        let whole = written(&self.records)?;
        let estimated = self.estimator.tokens(&whole, self.limits.hard_cap);
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
        let item = |record| Item { record, declared: previews.of(&record.address) };
        let items: Vec<Item<'_>> = records.iter().map(item).collect();
        let is_summary = self.is_summary || self.is_marked;
        let response = &mut self.response;
        let render = |widths: &[FieldWidth]| {
            let summarized = is_summary || widths.iter().any(|width| *width != FieldWidth::Whole);
            response.meta.summarized = summarized;
            response.meta.details_available = summarized.then(|| details.clone());
            response.items = items.iter().zip(widths).map(|(item, width)| item.at(*width)).collect();
            serde_json::to_string(response).map_err(unwritable)
        };
        let fitted = fit_rows(&items, self.narrowest, self.budget.beside(envelope.len()), render)?;
        match fitted {
            FittedRows::Only(rows) => Ok(FitResult::Rows(rows)),
            FittedRows::All { json, widths, tokens, .. } => {
                let summarized = is_summary || widths.iter().any(|width| *width != FieldWidth::Whole);
                let shaping = Shaping {
                    items: widths.len(),
                    strategy: if self.in_pages { Strategy::Paginated } else { Strategy::List },
                    summarized,
                    oversized: budget.summary_mode(),
                    tokens,
                    candidate_tokens: Some(estimated),
                    ..Shaping::default()
                };
                let compared = self
                    .compares
                    .then(|| (count_tokens(&stored) + count_tokens(&envelope), count_tokens(&json)));
                Ok(FitResult::Page(Answer { compared, ..Answer::with_shaping(json, shaping) }))
            }
        }
    }

    /// Replaces the longest values of the records by placeholders, so that they fit beside the envelope.
    fn mark(&mut self, envelope: &str, previews: &Previews) {
        let room = self.budget.beside_json(envelope);
        for record in &mut self.records {
            let declared = previews.of(&record.address);
            if let Some(marked) = marks::within(record, &record.data, declared, room) {
                record.data = marked;
            }
        }
    }
}

/// Record in a list, with the fields that its stream declares for summaries.
struct Item<'a> {
    record: &'a Record,
    declared: &'a [FieldPath],
}

impl Item<'_> {
    /// Returns the item at a width, always with an id to request it by.
    fn at(&self, width: FieldWidth) -> RecordData {
        let shown = narrow(&self.record.data, width, self.declared).0;
        with_id(self.record, shown.map(Cow::into_owned).unwrap_or_default())
    }

    /// Returns the bytes of the item as JSON, including its comma.
    fn size(&self, width: FieldWidth) -> usize {
        bytes_of(&self.at(width)) + ",".len()
    }
}

impl FitRow for Item<'_> {
    fn whole(&self) -> usize {
        let data = &self.record.data;
        if data.contains_key("id") {
            // No id has to be added, so the item is measured without building it.
            bytes_of(data) + ",".len()
        } else {
            self.size(FieldWidth::Whole)
        }
    }

    fn widths(&self) -> [usize; FIELD_WIDTHS.len()] {
        // An item without an `id` field gets one in front.
        let data = &self.record.data;
        let id = if data.contains_key("id") || data.is_empty() {
            0
        } else {
            bytes_of(&with_id(self.record, RecordData::new())) - "{}".len() + ",".len()
        };
        let mut widths = widths_of(data, self.declared);
        for (width, bytes) in FIELD_WIDTHS.into_iter().zip(&mut widths) {
            match width {
                FieldWidth::Whole | FieldWidth::Values(_) if !data.is_empty() => *bytes += id + ",".len(),
                _ => *bytes = self.size(width),
            }
        }
        widths
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::handle::RecordAddress;

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
            let record = Record::of(address, data);
            let declared = [FieldPath::field("id")];
            let item = Item { record: &record, declared: &declared };
            prop_assert_eq!(item.widths(), FIELD_WIDTHS.map(|width| item.size(width)));
        }
    }
}
