//! Fitting a page of records into its budget.

use std::io;

use serde::Serialize;

use super::payload::json_of;
use super::previews::Previews;
use super::shown_record::{ShownRecord, show};
use super::unavailable::ShownUnavailable;
use super::{Payload, ToolError};
use crate::fit::{FieldWidth, FittedRows, PageBudget, Shaping, Strategy, fit_rows};
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
    let nameable: Vec<&Change> =
        rows.iter().filter(|row| show(row, FieldWidth::None, previews).is_some()).collect();
    page.omitted = Some(rows.len() - nameable.len()).filter(|omitted| *omitted > 0);
    let beside = json_of(&page)?.len();
    let size_of = |row: usize, width| nameable.get(row).map_or(0, |row| size(row, width, previews));
    let render = |widths: &[FieldWidth]| {
        let shown = nameable.iter().zip(widths).filter_map(|(row, width)| show(row, *width, previews));
        page.records = shown.collect();
        json_of(&page)
    };
    match fit_rows(nameable.len(), FieldWidth::None, size_of, budget.beside(beside), render)? {
        FittedRows::Only(rows) => Ok(Fitted::Rows(rows)),
        FittedRows::All { json, widths, tokens } => {
            let whole = nameable.iter().map(|row| size(row, FieldWidth::Whole, previews)).sum::<usize>();
            let shaping = Shaping {
                items: widths.len(),
                strategy: if page.next_cursor.is_some() { Strategy::Paginated } else { Strategy::Whole },
                summarized: widths.iter().any(|width| *width != FieldWidth::Whole),
                oversized: beside + whole > budget.bytes,
                ..Shaping::default()
            };
            let has_previews = widths.iter().any(|width| matches!(width, FieldWidth::Preview(_)));
            let payload = Payload::of_fitting(json, tokens)?.shaped(shaping);
            Ok(Fitted::Page { payload, has_previews })
        }
    }
}

/// Bytes of a row as JSON, with its comma.
fn size(row: &Change, width: FieldWidth, previews: &Previews) -> usize {
    let mut counter = Counter(1);
    match show(row, width, previews).map(|shown| serde_json::to_writer(&mut counter, &shown)) {
        Some(Ok(())) => counter.0,
        Some(Err(_)) | None => usize::MAX / 1_000,
    }
}

/// Counts what is written and keeps nothing: a row may have megabytes.
struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
