//! One lane of a merged list: the page that is being read of it, and how far it was given.

use std::collections::VecDeque;

use super::place::Place;
use super::saved::SavedLane;
use crate::handle::ConnectionId;
use crate::source::{Change, Count};

/// Names that find the place in a page again: one of them is still there when the others were deleted.
const LAST_KEPT: usize = 4;

/// A page of a lane as it was read.
#[derive(Debug, Default)]
pub(in crate::source) struct LanePage {
    /// The rows in the lane's order; `None` stands for one that no handle can name.
    pub(in crate::source) rows: Vec<Option<Row>>,
    /// Where the lane goes on.
    pub(in crate::source) next: Option<String>,
    /// Whether there is more, as far as the server says.
    pub(in crate::source) has_more: Option<bool>,
    /// How many there are in all, if it was counted.
    pub(in crate::source) count: Option<Count>,
}

/// A row, and where in the order it belongs.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::source) struct Row {
    /// Where it belongs.
    pub(in crate::source) place: Place,
    /// The record.
    pub(in crate::source) change: Change,
    /// What copies of it have in common: their connection and key.
    name: String,
}

impl Row {
    /// A row of a connection, which may be printed otherwise.
    pub(in crate::source) fn new(place: Place, change: Change, connection: Option<&ConnectionId>) -> Self {
        let connection = connection.map_or("", |connection| connection.as_str());
        let name = format!("{connection}/{}", change.address().record);
        Self { place, change, name }
    }
}

/// One lane while a page is made.
#[derive(Debug)]
pub(super) struct Lane<Name> {
    pub(super) saved: SavedLane<Name>,
    pub(super) reads: usize,
    /// It gave a row of this page.
    pub(super) has_given: bool,
    pub(super) state: State,
}

/// What is known of its next row.
#[derive(Debug)]
pub(super) enum State {
    Unread,
    Read { rows: VecDeque<Option<Row>>, next: Option<String> },
    Failed,
    Ended,
}

impl<Name> Lane<Name> {
    /// Takes up a page behind the rows that were given of it, and says how many rows without a name it passed.
    pub(super) fn read(&mut self, rows: Vec<Option<Row>>, next: Option<String>) -> usize {
        let row_name = |row: &Option<Row>| row.as_ref().map(|row| row.name.clone());
        let was_given = |row: &Option<Row>| row_name(row).is_some_and(|name| self.saved.last.contains(&name));
        // Rows without a name are passed together with the row before them.
        let behind = |place| place + 1 + rows.iter().skip(place + 1).take_while(|row| row.is_none()).count();
        let given = match rows.iter().rposition(was_given) {
            // The page was longer when it was given, and the place is behind its end.
            Some(place)
                if self.saved.taken > rows.len()
                    && rows.get(place).and_then(row_name).as_ref() != self.saved.last.back() =>
            {
                self.saved.taken
            }
            Some(place) => behind(place),
            None => self.saved.taken,
        };
        if given > rows.len() {
            // What is missing from it stands on the next.
            self.saved.taken = given - rows.len();
            self.turn_to(next);
            return 0;
        }
        self.saved.taken = given;
        self.state = State::Read { rows: rows.into_iter().skip(given).collect(), next };
        self.settle()
    }

    /// Whether its next row is not known and has to be waited for. A lane that gave nothing in so many reads is not.
    pub(super) fn is_awaited(&self, reads: usize) -> bool {
        matches!(self.state, State::Unread) && (self.reads < reads || self.has_given)
    }

    /// The place of its next row, when that is known.
    pub(super) fn head(&self) -> Option<&Place> {
        match &self.state {
            State::Read { rows, .. } => rows.front()?.as_ref().map(|row| &row.place),
            State::Unread | State::Failed | State::Ended => None,
        }
    }

    /// The first row with its name, and how many without one came after it.
    pub(super) fn pop(&mut self) -> (Option<(Row, String)>, usize) {
        let State::Read { rows, .. } = &mut self.state else { return (None, 0) };
        let row = rows.pop_front().flatten().map(|row| {
            let name = row.name.clone();
            (row, name)
        });
        self.has_given = true;
        self.saved.taken += 1;
        self.saved.last.extend(row.as_ref().map(|(_, name)| name.clone()));
        if self.saved.last.len() > LAST_KEPT {
            self.saved.last.pop_front();
        }
        (row, self.settle())
    }

    /// Passes rows without a name, and turns the page at its end.
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
                self.saved.trail.comes_back_to(&next);
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
