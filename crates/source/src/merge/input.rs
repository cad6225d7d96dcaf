//! One input of a merged list: the page that is being read from it and the position reached in that page.

use std::collections::VecDeque;

use fetchwell_core::handle::ConnectionId;

use super::position::SavedInput;
use super::sort_key::SortKey;
use crate::{Change, Count};

/// Number of row names that are kept to find the position in a page again, even if some of those rows were deleted.
const MAX_LAST_NAMES: usize = 4;

/// One page of an input.
#[derive(Debug, Default)]
pub struct InputPage {
    /// Rows in the order of the input; `None` stands for a record that no handle can name.
    pub rows: Vec<Option<Row>>,
    /// Cursor of the next page.
    pub next: Option<String>,
    /// True if the server says that there are more pages, or `None` if it does not say.
    pub has_more: Option<bool>,
    /// Total number of records, if the server counted them.
    pub count: Option<Count>,
}

/// Row of an input with its sort key.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Sort key of the row.
    pub(crate) sort_key: SortKey,
    /// Record or deletion in the row.
    pub(crate) change: Change,
    /// Name shared by copies of the row: connection and record id.
    name: String,
}

impl Row {
    /// Creates a row. `connection` is the id by which copies are recognized; the record itself may print another one.
    pub fn new(sort_key: SortKey, change: Change, connection: Option<&ConnectionId>) -> Self {
        let connection = connection.map_or("", |connection| connection.as_str());
        let name = [connection, "/", change.address().record.as_str()].concat();
        Self { sort_key, change, name }
    }
}

/// Input of a merged list while one page of the list is assembled.
#[derive(Debug)]
pub(super) struct MergeInput<Name> {
    pub(super) saved: SavedInput<Name>,
    pub(super) reads: usize,
    /// True if the input contributed a row to this page.
    pub(super) has_contributed: bool,
    pub(super) state: State,
}

/// State of the page that is being read.
#[derive(Debug)]
pub(super) enum State {
    Unread,
    Read { rows: VecDeque<Option<Row>>, next: Option<String> },
    Failed,
    Ended,
}

impl<Name> MergeInput<Name> {
    /// Accepts a page and skips the rows that were already returned. Returns the number of rows without a name that
    /// it skipped.
    pub(super) fn read(&mut self, rows: Vec<Option<Row>>, next: Option<String>) -> usize {
        let was_returned =
            |row: &Option<Row>| row.as_ref().is_some_and(|row| self.saved.last.contains(&row.name));
        // Rows without a name are skipped together with the row before them.
        let behind = |index| index + 1 + rows.iter().skip(index + 1).take_while(|row| row.is_none()).count();
        let returned = match rows.iter().rposition(was_returned) {
            // The page was longer when it was returned, and the position is behind its end.
            Some(index)
                if self.saved.taken > rows.len()
                    && rows.get(index).and_then(Option::as_ref).map(|row| &row.name)
                        != self.saved.last.back() =>
            {
                self.saved.taken
            }
            Some(index) => behind(index),
            None => self.saved.taken,
        };
        if returned > rows.len() {
            // The remaining rows to skip are on the next page.
            self.saved.taken = returned - rows.len();
            self.turn_to(next);
            return 0;
        }
        self.saved.taken = returned;
        let mut rows = VecDeque::from(rows);
        rows.drain(..returned);
        self.state = State::Read { rows, next };
        self.settle()
    }

    /// Returns true if the next row is unknown and the merge has to wait for it. An input that gave nothing in
    /// `reads` pages is not waited for.
    pub(super) fn is_awaited(&self, reads: usize) -> bool {
        matches!(self.state, State::Unread) && (self.reads < reads || self.has_contributed)
    }

    /// Returns the sort key of the next row, if it is known.
    pub(super) fn head(&self) -> Option<&SortKey> {
        match &self.state {
            State::Read { rows, .. } => rows.front()?.as_ref().map(|row| &row.sort_key),
            State::Unread | State::Failed | State::Ended => None,
        }
    }

    /// Removes the first row. Returns it with its name, and the number of rows without a name that followed it.
    pub(super) fn pop(&mut self) -> (Option<(Row, String)>, usize) {
        let State::Read { rows, .. } = &mut self.state else { return (None, 0) };
        let row = rows.pop_front().flatten().map(|row| {
            let name = row.name.clone();
            (row, name)
        });
        self.has_contributed = true;
        self.saved.taken += 1;
        self.saved.last.extend(row.as_ref().map(|(_, name)| name.clone()));
        if self.saved.last.len() > MAX_LAST_NAMES {
            self.saved.last.pop_front();
        }
        (row, self.settle())
    }

    /// Skips rows without a name and moves to the next page at the end of this one.
    fn settle(&mut self) -> usize {
        let State::Read { rows, next } = &mut self.state else { return 0 };
        let mut nameless = 0;
        while let Some(None) = rows.front() {
            rows.pop_front();
            nameless += 1;
        }
        self.saved.taken += nameless;
        if rows.is_empty() {
            let next = next.take();
            self.saved.taken = 0;
            self.saved.last.clear();
            self.turn_to(next);
        }
        nameless
    }

    fn turn_to(&mut self, next: Option<String>) {
        match next {
            Some(next) => {
                self.saved.cycles.visit(&next);
                self.saved.cursor = Some(next);
                self.state = State::Unread;
            }
            None => {
                self.saved.cursor = None;
                self.state = State::Ended;
            }
        }
    }
}
