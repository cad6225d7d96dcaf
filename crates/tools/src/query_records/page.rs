//! Fits a page of records into its budget.
//!
//! [`PageRows`] measures each record once; [`fit_page`] then gives the widths of fields to the rows, the narrowest to the
//! largest. A page may be fitted again with other previews.

use fetchwell_core::fit::{
    FIELD_WIDTHS, FieldWidth, FieldsSize, FitRow, FittedRows, MeasuredFields, PageBudget, Shaping, Strategy,
    bytes_of, fit_rows, room_after,
};
use fetchwell_core::handle::Handle;
use fetchwell_core::record::{Record, RecordData};
use fetchwell_source::Change;
use serde::Serialize;

use super::shown_record::{ShownRecord, render};
use crate::answer::{NoResults, ONLY_OMITTED, Payload, json_of};
use crate::cache::Previews;
use crate::error::{ShownUnavailable, ToolError};
use crate::paging::Continuation;

/// The answer of `query_records`.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct RecordPage<'a> {
    pub(super) records: Vec<ShownRecord<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_changes_since: Option<String>,
    /// True if there are more changes now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) has_more: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) count: Option<u64>,
    /// Number of records without a handle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) omitted: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) unavailable: Vec<ShownUnavailable>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<String>,
    #[serde(flatten)]
    pub(super) explanation: NoResults,
}

impl RecordPage<'_> {
    /// Adds the cursor of the next page, or the warning that there is none.
    pub(super) fn continued_by(mut self, continuation: Continuation) -> Self {
        match continuation {
            Continuation::Cursor(cursor) => self.next_cursor = Some(cursor),
            Continuation::Warning(warning) => self.warnings.push(warning),
        }
        self
    }
}

/// Maximum size, in bytes of text, of rows that are fitted at once. That takes less than a millisecond.
const MAX_SMALL_BYTES: usize = 16 * 1024;

/// Returns true if rows are so small that moving them to another thread would take longer than fitting them.
pub(super) fn is_small(rows: &[Change]) -> bool {
    /// Bytes of a record besides its fields: its handle and its names.
    const RECORD: usize = 64;
    let fields = |room: usize, data: &RecordData| {
        data.iter().try_fold(room.checked_sub(RECORD)?, |room, (name, value)| {
            room_after(room.checked_sub(name.len())?, value)
        })
    };
    let record = |room, record: &Record| {
        let mut related = record.expanded.iter().flat_map(|relation| &relation.records);
        related.try_fold(fields(room, &record.data)?, |room, record| fields(room, &record.data))
    };
    let room = rows.iter().try_fold(MAX_SMALL_BYTES, |room, row| match row {
        Change::Present(present) => record(room, present),
        Change::Deleted { .. } => room.checked_sub(RECORD),
    });
    room.is_some()
}

/// A fitted page, or the number of rows that would fit.
#[derive(Debug)]
pub(super) enum FittedPage {
    /// All rows fit.
    Page {
        payload: Payload,
        /// True if a row is shown as a preview.
        has_previews: bool,
    },
    /// Only so many rows fit.
    Rows(usize),
}

/// The rows of a page that have a handle, with their sizes.
#[derive(Debug)]
pub(super) struct PageRows<'a> {
    rows: Vec<MeasuredRow<'a>>,
    /// Number of rows without a handle.
    omitted: usize,
}

impl<'a> PageRows<'a> {
    /// Measures the rows of a page.
    pub(super) fn new(rows: &'a [Change]) -> Self {
        let measured: Vec<MeasuredRow<'a>> = rows.iter().filter_map(MeasuredRow::new).collect();
        Self { omitted: rows.len() - measured.len(), rows: measured }
    }
}

/// Fits rows into a page. `page` has everything next to them.
pub(super) fn fit_page<'a>(
    mut page: RecordPage<'a>,
    PageRows { rows, omitted }: &'a PageRows<'a>,
    previews: &'a Previews,
    budget: PageBudget,
) -> Result<FittedPage, ToolError> {
    page.omitted = Some(*omitted).filter(|omitted| *omitted > 0);
    page.warnings.extend((rows.is_empty() && *omitted > 0).then(|| ONLY_OMITTED.to_owned()));
    let beside = json_of(&page)?.len();
    let rows: Vec<Row<'_>> = rows.iter().map(|row| Row { row, previews }).collect();
    let render = |widths: &[FieldWidth]| {
        page.records = rows.iter().zip(widths).map(|(row, width)| row.at(*width)).collect();
        json_of(&page)
    };
    match fit_rows(&rows, FieldWidth::None, budget.beside(beside), render)? {
        FittedRows::Only(rows) => Ok(FittedPage::Rows(rows)),
        FittedRows::All { json, widths, tokens, whole } => {
            let summarized = widths.iter().any(|width| *width != FieldWidth::Whole);
            let shaping = Shaping {
                items: widths.len(),
                strategy: Strategy::Paginated,
                summarized,
                oversized: beside + whole > budget.bytes,
                ..Shaping::default()
            };
            let has_previews = widths.iter().any(|width| matches!(width, FieldWidth::Preview(_)));
            let payload = Payload::from_fitted_json(json, tokens)?.with_shaping(shaping);
            let payload = if summarized { payload.shortened_from(beside + whole) } else { payload };
            Ok(FittedPage::Page { payload, has_previews })
        }
    }
}

/// A row with its handle and sizes.
#[derive(Debug)]
struct MeasuredRow<'a> {
    change: &'a Change,
    id: String,
    /// Sizes of the fields, if nothing else differs between widths.
    fields: Option<MeasuredFields<'a>>,
}

impl<'a> MeasuredRow<'a> {
    /// Measures a row. Returns `None` if it has no handle.
    fn new(change: &'a Change) -> Option<Self> {
        let fields = match change {
            Change::Present(record) if record.expanded.is_empty() => Some(MeasuredFields::new(&record.data)),
            _ => None,
        };
        Some(Self { change, id: Handle::mint(change.address())?.to_string(), fields })
    }
}

/// A row with the previews of its stream.
struct Row<'a> {
    row: &'a MeasuredRow<'a>,
    previews: &'a Previews,
}

impl<'a> Row<'a> {
    /// Renders the row at a width.
    fn at(&self, width: FieldWidth) -> ShownRecord<'a> {
        render(self.row.change, &self.row.id, width, self.previews)
    }

    /// Returns the size of the row as JSON, with its comma.
    fn size(&self, width: FieldWidth) -> usize {
        bytes_of(&self.at(width)) + ",".len()
    }

    /// Returns the size of the row without its fields, with its comma. It is equal at every width.
    fn around(&self) -> usize {
        let mut shown = self.at(FieldWidth::None);
        shown.more_fields = 0;
        bytes_of(&shown) + ",".len()
    }
}

impl FitRow for Row<'_> {
    fn whole(&self) -> usize {
        match &self.row.fields {
            Some(fields) => self.around() + ",\"data\":".len() + fields.whole(),
            None => self.size(FieldWidth::Whole),
        }
    }

    fn widths(&self) -> [usize; FIELD_WIDTHS.len()] {
        let Some(fields) = &self.row.fields else { return FIELD_WIDTHS.map(|width| self.size(width)) };
        let (around, declared) = (self.around(), self.previews.fields(self.row.change.address()));
        fields.widths(declared).map(|FieldsSize { bytes, left_out, .. }| {
            let name = if bytes > 0 { ",\"data\":".len() } else { 0 };
            around + name + bytes + more_fields_len(left_out)
        })
    }
}

/// Returns the size of the number of omitted fields as JSON. It is absent if no field is omitted.
fn more_fields_len(missing: usize) -> usize {
    missing.checked_ilog10().map_or(0, |digits| ",\"more_fields\":".len() + digits as usize + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use fetchwell_core::handle::RecordAddress;
    use fetchwell_core::record::ExpandedRelation;

    fn record(text: &str) -> Record {
        let (connection, stream) = (Some("cin".parse().unwrap()), "s".parse().unwrap());
        let address = RecordAddress { connection, stream, record: "k".parse().unwrap() };
        Record::new(address, RecordData::from_iter([("text".to_owned(), json!({"in": [text, 1]}))]))
    }

    #[test]
    fn small_rows_have_little_text_in_fields_and_related_records() {
        let rows = |record: Record, count| vec![Change::Present(Box::new(record)); count];
        let related = |text| ExpandedRelation {
            relation: "files".to_owned(),
            many: true,
            has_more: false,
            records: vec![record(text)],
        };
        let (short, long) = ("x".repeat(500), "x".repeat(MAX_SMALL_BYTES));
        assert!(is_small(&rows(record(&short), 25)));
        assert!(!is_small(&rows(record(&short), 50)));
        assert!(!is_small(&rows(record(&long), 1)));
        assert!(is_small(&rows(Record { expanded: vec![related(&short)], ..record(&short) }, 10)));
        assert!(!is_small(&rows(Record { expanded: vec![related(&long)], ..record(&short) }, 1)));
    }

    proptest! {
        #[test]
        fn measured_sizes_are_exact(
            values in proptest::collection::vec((".{0,20}", ".{0,9}|[a-z\"]{0,3000}"), 0..14),
            key in "[a-z]{1,9}|\\PC{1,9}",
        ) {
            let Ok(record) = key.parse() else { return Ok(()) };
            let address = RecordAddress {
                connection: Some("cin".parse().unwrap()),
                stream: "s".parse().unwrap(),
                record,
            };
            let data: RecordData = values.into_iter().map(|(name, text)| (name, json!(text))).collect();
            let record = Record::new(address, data);
            let (change, previews) = (Change::Present(Box::new(record)), Previews::default());
            let Some(measured) = MeasuredRow::new(&change) else { return Ok(()) };
            let row = Row { row: &measured, previews: &previews };
            prop_assert_eq!(row.widths(), FIELD_WIDTHS.map(|width| row.size(width)));
            prop_assert_eq!(row.whole(), row.size(FieldWidth::Whole));
        }
    }
}
