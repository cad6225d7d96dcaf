//! Fitting a page of records into its budget.

use serde::Serialize;

use super::no_results::NoResults;
use super::payload::json_of;
use super::previews::Previews;
use super::shown_record::{ShownRecord, show};
use super::unavailable::ShownUnavailable;
use super::{Payload, ToolError};
use crate::fit::{
    FIELD_WIDTHS, FieldWidth, FitRow, FittedRows, PageBudget, Shaping, Strategy, bytes_of, fit_rows, narrow,
    widths_of,
};
use crate::source::Change;

/// What `query_records` answers.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct RecordPage<'a> {
    pub(super) records: Vec<ShownRecord<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_changes_since: Option<String>,
    /// There are more changes now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) has_more: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) count: Option<u64>,
    /// Records without a handle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) omitted: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) unavailable: Vec<ShownUnavailable>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<String>,
    #[serde(flatten)]
    pub(super) nothing: NoResults,
}

/// A page that fits, or how many rows would.
#[derive(Debug)]
pub(super) enum Fitted {
    Page {
        payload: Payload,
        /// Some row is a preview.
        has_previews: bool,
    },
    Rows(usize),
}

/// Shows all rows, the greatest the narrowest. `page` is what stands beside them.
pub(super) fn fit_page<'a>(
    mut page: RecordPage<'a>,
    rows: &'a [Change],
    previews: &'a Previews,
    budget: PageBudget,
) -> Result<Fitted, ToolError> {
    let shown_at = |width| move |row: &Row<'a>| show(row.row, width, row.previews);
    let mut nameable: Vec<Row<'a>> = rows.iter().map(|row| Row { row, previews }).collect();
    nameable.retain(|row| shown_at(FieldWidth::None)(row).is_some());
    page.omitted = Some(rows.len() - nameable.len()).filter(|omitted| *omitted > 0);
    let beside = json_of(&page)?.len();
    let render = |widths: &[FieldWidth]| {
        let shown = nameable.iter().zip(widths).filter_map(|(row, width)| shown_at(*width)(row));
        page.records = shown.collect();
        json_of(&page)
    };
    match fit_rows(&nameable, FieldWidth::None, budget.beside(beside), render)? {
        FittedRows::Only(rows) => Ok(Fitted::Rows(rows)),
        FittedRows::All { json, widths, tokens, whole } => {
            let shaping = Shaping {
                items: widths.len(),
                strategy: Strategy::Paginated,
                summarized: widths.iter().any(|width| *width != FieldWidth::Whole),
                oversized: beside + whole > budget.bytes,
                candidate_tokens: Some((beside + whole) / crate::fit::budget::BYTES_PER_TOKEN),
                ..Shaping::default()
            };
            let has_previews = widths.iter().any(|width| matches!(width, FieldWidth::Preview(_)));
            let payload = Payload::of_fitting(json, tokens)?.shaped(shaping);
            Ok(Fitted::Page { payload, has_previews })
        }
    }
}

/// A row, and what its stream wants shown of it.
struct Row<'a> {
    row: &'a Change,
    previews: &'a Previews,
}

impl Row<'_> {
    /// Bytes of it as JSON, with its comma.
    fn size(&self, width: FieldWidth) -> usize {
        show(self.row, width, self.previews).map_or(0, |shown| bytes_of(&shown) + ",".len())
    }
}

impl FitRow for Row<'_> {
    fn whole(&self) -> usize {
        self.size(FieldWidth::Whole)
    }

    fn widths(&self) -> [usize; FIELD_WIDTHS.len()] {
        match self.row {
            // What stands around the fields is the same at every width, but for how many are missing.
            Change::Present(record) if record.expanded.is_empty() => {
                let declared = self.previews.of(&record.address);
                let mut around = ",".len();
                if let Some(mut shown) = show(self.row, FieldWidth::None, self.previews) {
                    shown.more_fields = 0;
                    around += bytes_of(&shown);
                }
                let mut widths = widths_of(&record.data, declared);
                for (width, bytes) in FIELD_WIDTHS.into_iter().zip(&mut widths) {
                    let missing = match width {
                        FieldWidth::Whole | FieldWidth::Values(_) => 0,
                        FieldWidth::Preview(_) => narrow(&record.data, width, declared).1,
                        FieldWidth::None => record.data.len(),
                    };
                    let fields = if *bytes > 0 { ",\"data\":".len() } else { 0 };
                    *bytes += around + fields + more_fields_len(missing);
                }
                widths
            }
            _ => FIELD_WIDTHS.map(|width| self.size(width)),
        }
    }
}

/// Bytes of the number of fields that are missing, which is not there when none is.
fn more_fields_len(missing: usize) -> usize {
    missing.checked_ilog10().map_or(0, |digits| ",\"more_fields\":".len() + digits as usize + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::record::{Record, RecordData};

    proptest! {
        #[test]
        fn a_row_takes_what_was_measured(
            values in proptest::collection::vec((".{0,20}", ".{0,9}|[a-z\"]{0,3000}"), 0..14),
            key in "[a-z]{1,9}|\\PC{1,9}",
        ) {
            let Ok(record) = key.parse() else { return Ok(()) };
            let address = crate::handle::RecordAddress {
                connection: Some("cin".parse().unwrap()),
                stream: "s".parse().unwrap(),
                record,
            };
            let data: RecordData = values.into_iter().map(|(name, text)| (name, json!(text))).collect();
            let record = Record::of(address, data);
            let (row, previews) = (Change::Present(Box::new(record)), Previews::default());
            let row = Row { row: &row, previews: &previews };
            if show(row.row, FieldWidth::None, &previews).is_some() {
                prop_assert_eq!(row.widths(), FIELD_WIDTHS.map(|width| row.size(width)));
            }
        }
    }
}
