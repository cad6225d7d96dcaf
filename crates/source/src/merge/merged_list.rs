//! K-way merge of paginated inputs into one list, without gaps and without duplicates.
//!
//! An input is a list with its own pages and order: one connection or one source. The first of the inputs' first rows
//! is returned next, so an input with an unknown next row blocks the list until its page is read. The merge does no
//! IO: `MergedList::pending_reads` returns the pages to read, `MergedList::push_page` accepts a page, and `MergedList::fail` continues
//! without an input.

use std::cmp::Ordering;
use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::input::{InputPage, MergeInput, Row, State};
use super::position::{MergePosition, ReturnedRows, SavedInput};
use super::seen::{Key, SeenRows, digest};
use crate::{
    Count, CountMode, Direction, QueryFault, RecordsPage, RecordsPosition, RecordsQuery, SourceError,
};

/// Maximum number of pages read from one input for one page of the list. Bounds the requests to servers that return
/// empty pages.
pub(super) const MAX_READS: usize = 8;

/// Inputs of a merged list and the rows taken from them so far.
#[derive(Debug)]
pub struct MergedList<Name> {
    direction: Direction,
    inputs: Vec<MergeInput<Name>>,
    rows: Vec<Row>,
    returned: Option<ReturnedRows>,
    since_failure: Option<SeenRows>,
    count: CountState,
    ended: bool,
    nameless: usize,
    dead_end: bool,
    /// Inputs that failed before and therefore return rows out of order.
    behind: Vec<Name>,
}

/// Page that has to be read next from an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingRead<Name> {
    /// Index of the input.
    pub input: usize,
    /// Name of the input.
    pub name: Name,
    /// Server's cursor of the page, or `None` for its first page.
    pub cursor: Option<String>,
    /// Number of rows of that page that were already returned.
    pub(crate) taken: usize,
}

/// Sum of the inputs' counts; unknown as soon as one input reports none.
#[derive(Debug, Clone, Copy)]
enum CountState {
    Known(Count),
    Sum(Option<Count>),
    Unknown,
}

impl<Name: Clone + Serialize + DeserializeOwned> MergedList<Name> {
    /// Starts a list at its first record. Of rows with equal keys, the one of the later input is the greater.
    pub fn start(inputs: impl IntoIterator<Item = Name>, direction: Direction) -> Self {
        let inputs = inputs.into_iter().map(SavedInput::start).collect();
        Self::resume(
            MergePosition { count: None, ended: false, returned: None, since_failure: None, inputs },
            direction,
        )
    }

    /// Continues a list from a saved position.
    pub fn resume(saved: MergePosition<Name>, direction: Direction) -> Self {
        let inputs = saved.inputs.into_iter().map(|saved| MergeInput {
            saved,
            reads: 0,
            has_contributed: false,
            state: State::Unread,
        });
        Self {
            direction,
            inputs: inputs.collect(),
            rows: Vec::new(),
            returned: saved.returned,
            since_failure: saved.since_failure,
            count: match saved.count {
                Some((value, accuracy)) => CountState::Known(Count { value, accuracy }),
                // Inputs that have ended are not counted again.
                None if saved.ended => CountState::Unknown,
                None => CountState::Sum(None),
            },
            ended: saved.ended,
            nameless: 0,
            dead_end: false,
            behind: Vec::new(),
        }
    }

    /// Continues a list after the page of an earlier query. Refuses a position of another query.
    pub fn after(query: &RecordsQuery, position: &RecordsPosition) -> Result<Self, SourceError> {
        let (question, place) = position.0.split_once(' ').unwrap_or_default();
        let saved = MergePosition::open(&RecordsPosition(place.to_owned()))?;
        if u64::from_str_radix(question, 16) != Ok(query.fingerprint()) {
            return Err(SourceError::InvalidQuery {
                fault: QueryFault::MismatchedCursor,
                problem: "the cursor is of another stream, connection, filter or order".to_owned(),
                hint: "List again without `cursor`.".to_owned(),
            });
        }
        Ok(Self::resume(saved, query.direction))
    }

    /// Returns the page of a query. Its position is bound to the query by a fingerprint.
    pub fn page_of(self, query: &RecordsQuery) -> RecordsPage
    where
        Name: fmt::Display,
    {
        let page = self.page();
        let bound =
            |next: RecordsPosition| RecordsPosition(format!("{:016x} {}", query.fingerprint(), next.0));
        RecordsPage {
            next: page.next.map(bound),
            count: page.count.filter(|_| query.count != CountMode::None),
            places: if query.placed { page.places } else { Vec::new() },
            ..page
        }
    }

    /// Returns true if servers need not count, because the count is known or cannot be known.
    pub fn is_counted(&self) -> bool {
        !matches!(self.count, CountState::Sum(_))
    }

    /// Returns the pages to read: one for each input with an unknown next row.
    pub fn pending_reads(&self) -> Vec<PendingRead<Name>> {
        let inputs = self.inputs.iter().enumerate();
        inputs
            .filter(|(_, input)| matches!(input.state, State::Unread) && input.reads < MAX_READS)
            .map(|(number, input)| PendingRead {
                input: number,
                name: input.saved.name.clone(),
                cursor: input.saved.cursor.clone(),
                taken: input.saved.taken,
            })
            .collect()
    }

    /// Accepts a page of an input.
    pub fn push_page(&mut self, input: usize, page: InputPage) {
        let Some(input) = self.inputs.get_mut(input) else { return };
        input.reads += 1;
        self.count = match (self.count, page.count) {
            // An input is counted with its first page.
            (CountState::Sum(sum), _) if input.reads > 1 => CountState::Sum(sum),
            (CountState::Sum(sum), Some(more)) => {
                CountState::Sum(Some(sum.map_or(more, |sum| sum.and(more))))
            }
            (CountState::Sum(_), None) => CountState::Unknown,
            (known, _) => known,
        };
        if std::mem::take(&mut input.saved.late) {
            self.behind.push(input.saved.name.clone());
        }
        // A cursor that returns to itself or leads in a cycle would be read forever.
        let is_asked = |next: &String| {
            page.has_more != Some(false)
                && !next.is_empty()
                && Some(next) != input.saved.cursor.as_ref()
                && !input.saved.cycles.clone().visit(next)
        };
        let next = page.next.filter(is_asked);
        self.dead_end |= next.is_none() && page.has_more == Some(true);
        self.nameless += input.read(page.rows, next);
        self.ended |= matches!(input.state, State::Ended);
    }

    /// Marks an input as failed. The list continues without it and tries it again for the next page.
    pub(crate) fn fail(&mut self, input: usize) {
        let Some(input) = self.inputs.get_mut(input) else { return };
        input.state = State::Failed;
        self.remember();
    }

    /// Marks an input as ended.
    pub(crate) fn end(&mut self, input: usize) {
        if let Some(input) = self.inputs.get_mut(input) {
            input.state = State::Ended;
        }
    }

    /// Takes rows until there are `limit`, or until the next row of an input is unknown.
    pub fn take(&mut self, limit: usize) {
        self.skip_stalled_inputs();
        while self.rows.len() < limit && !self.inputs.iter().any(|input| input.is_awaited(MAX_READS)) {
            let heads =
                self.inputs.iter().enumerate().filter_map(|(number, input)| Some((input.head()?, number)));
            let first = match self.direction {
                Direction::Ascending => heads.min(),
                Direction::Descending => heads.max(),
            };
            let Some(input) = first.map(|(_, number)| number).and_then(|number| self.inputs.get_mut(number))
            else {
                return;
            };
            let (row, nameless) = input.pop();
            let named = row.map(|(row, name)| (digest([name.as_bytes()]), row, name));
            // Rows that an input returned before appear again if its pages overlap.
            let named = named.filter(|(key, ..)| input.saved.recent.insert(*key));
            self.nameless += nameless;
            self.ended |= matches!(input.state, State::Ended);
            if let Some((key, row, name)) = named
                && self.is_new(&row, key, name)
            {
                self.rows.push(row);
            }
        }
    }

    /// Skips inputs that returned only empty pages, so that they do not block the others. Their rows come late.
    fn skip_stalled_inputs(&mut self) {
        let is_stalled =
            |input: &MergeInput<Name>| matches!(input.state, State::Unread) && !input.is_awaited(MAX_READS);
        if self.inputs.len() > 1 && self.inputs.iter().any(is_stalled) {
            self.remember();
            for input in self.inputs.iter_mut().filter(|input| is_stalled(input)) {
                input.saved.late = true;
            }
        }
    }

    /// Starts to remember all returned rows, since rows can come late from here on.
    fn remember(&mut self) {
        let seen = self.since_failure.get_or_insert_default();
        for name in self.returned.iter().flat_map(|returned| &returned.names) {
            seen.insert(digest([name.as_bytes()]));
        }
    }

    /// Returns true if a row has not been returned yet. Copies of a row, from another input or repeated by a server,
    /// have the same sort key unless the input is late.
    fn is_new(&mut self, row: &Row, key: Key, name: String) -> bool {
        if !self.since_failure.as_mut().is_none_or(|seen| seen.insert(key)) {
            return false;
        }
        let order = self.returned.as_ref().map(|returned| match self.direction {
            Direction::Ascending => row.sort_key.cmp(&returned.sort_key),
            Direction::Descending => returned.sort_key.cmp(&row.sort_key),
        });
        match (&mut self.returned, order) {
            (Some(returned), Some(Ordering::Equal)) => {
                let is_new = !returned.names.contains(&name);
                returned.names.extend(is_new.then_some(name));
                is_new
            }
            // The row is late, and copies of the row returned last may still follow.
            (Some(_), Some(Ordering::Less)) if self.since_failure.is_some() => true,
            _ => {
                self.returned = Some(ReturnedRows { sort_key: row.sort_key.clone(), names: vec![name] });
                true
            }
        }
    }

    /// Returns true if at least `rows` rows were taken.
    pub fn has(&self, rows: usize) -> bool {
        self.rows.len() >= rows
    }

    /// Returns the page and the position of the next one. Failed inputs alone do not cause a next page.
    pub fn page(self) -> RecordsPage
    where
        Name: fmt::Display,
    {
        let failed = self.inputs.iter().any(|input| matches!(input.state, State::Failed));
        let count = match self.count {
            CountState::Known(count) => Some(count),
            CountState::Sum(sum) => sum.map(|sum| if failed { sum.at_least() } else { sum }),
            CountState::Unknown => None,
        };
        let goes_on =
            self.inputs.iter().any(|input| matches!(input.state, State::Unread | State::Read { .. }));
        let inputs = self.inputs.into_iter().filter(|input| !matches!(input.state, State::Ended));
        let inputs = inputs.map(|MergeInput { saved, state, .. }| {
            let late = saved.late || matches!(state, State::Failed);
            SavedInput { late, ..saved }
        });
        let saved = MergePosition {
            count: count.map(|count| (count.value, count.accuracy)),
            ended: self.ended,
            returned: self.returned,
            since_failure: self.since_failure,
            inputs: inputs.collect(),
        };
        let next = if goes_on { saved.seal() } else { None };
        let mut notes: Vec<String> = left_out(self.nameless).into_iter().collect();
        if next.is_none() && self.dead_end {
            notes.push("The record server says that there is more and gives no way to read on.".to_owned());
        }
        for name in self.behind {
            notes.push(format!("{name} did not answer for an earlier page, so its records come late."));
        }
        let has_more = next.is_some() || self.dead_end;
        let (places, rows) =
            self.rows.into_iter().map(|row| (row.sort_key.value().clone(), row.change)).unzip();
        RecordsPage { rows, places, next, has_more, count, notes, ..RecordsPage::default() }
    }
}

/// Returns a note about records that are left out because no handle can name them.
pub fn left_out(nameless: usize) -> Option<String> {
    match nameless {
        0 => None,
        1 => Some("1 record is left out, because no handle can name it.".to_owned()),
        many => Some(format!("{many} records are left out, because no handle can name them.")),
    }
}
