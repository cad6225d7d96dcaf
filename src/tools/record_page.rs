//! Fitting a page of records into its budget.

use std::io;

use serde::Serialize;

use super::payload::json_of;
use super::shown_record::{ShownRecord, show};
use super::unavailable::ShownUnavailable;
use super::{Payload, ToolError};
use crate::fit::{FIELD_WIDTHS, FieldWidth, count_tokens, widths_within, within_tokens};
use crate::source::Change;

/// What `query_records` answers.
#[derive(Debug, Default, Serialize)]
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

/// What one page takes at most.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageBudget {
    pub(super) bytes: usize,
    pub(super) tokens: usize,
}

/// A page that fits, or how many rows would.
#[derive(Debug)]
pub(super) enum Fitted {
    Page(Payload),
    Rows(usize),
}

/// Shows all rows, the greatest the narrowest. `page` is what stands beside them.
pub(super) fn fit_page<'a>(
    mut page: RecordPage<'a>,
    rows: &'a [Change],
    budget: PageBudget,
) -> Result<Fitted, ToolError> {
    let nameable: Vec<&Change> = rows.iter().filter(|row| show(row, FieldWidth::None).is_some()).collect();
    page.omitted = Some(rows.len() - nameable.len()).filter(|omitted| *omitted > 0);
    let mut room = budget.bytes.saturating_sub(json_of(&page)?.len());
    let whole: Vec<usize> = nameable.iter().map(|row| size(row, FieldWidth::Whole)).collect();
    // Other widths are measured when they are needed: when bytes, or then tokens, do not fit.
    let mut only_whole = whole.iter().sum::<usize>() <= room;
    let mut sizes: Vec<[usize; FIELD_WIDTHS.len()]> = if only_whole {
        whole.iter().map(|size| [*size; FIELD_WIDTHS.len()]).collect()
    } else {
        sizes_of(&nameable)
    };
    loop {
        let Some(widths) = widths_within(&sizes, room) else {
            return Ok(Fitted::Rows(rows_within(&sizes, room)));
        };
        page.records = nameable.iter().zip(widths).filter_map(|(row, width)| show(row, width)).collect();
        let json = json_of(&page)?;
        if within_tokens(&json, budget.tokens) {
            return Payload::of_json(json, budget.bytes).map(Fitted::Page);
        }
        if only_whole {
            sizes = sizes_of(&nameable);
            only_whole = false;
        }
        // Tokens are spread unevenly; each round takes at least a twentieth, so it ends.
        room = room.min(json.len()) * budget.tokens / count_tokens(&json) * 19 / 20;
    }
}

fn sizes_of(rows: &[&Change]) -> Vec<[usize; FIELD_WIDTHS.len()]> {
    rows.iter().map(|row| FIELD_WIDTHS.map(|width| size(row, width))).collect()
}

/// How many rows from the first on fit at their narrowest.
fn rows_within(sizes: &[[usize; FIELD_WIDTHS.len()]], room: usize) -> usize {
    let mut taken = 0;
    sizes
        .iter()
        .take_while(|own| {
            taken += own.last().copied().unwrap_or(usize::MAX);
            taken <= room
        })
        .count()
}

/// Bytes of a row as JSON, with its comma.
fn size(row: &Change, width: FieldWidth) -> usize {
    let mut counter = Counter(1);
    match show(row, width).map(|shown| serde_json::to_writer(&mut counter, &shown)) {
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
