//! Pages of several lanes as one list, without loss and without repetition.
//!
//! A lane is a list of its own: pages in its own order, of one connection or of one source. A row is given when
//! it is the first of the lanes' first rows, so a lane whose next row is not known holds the list up until its
//! page is read. Nothing here reads: [`Lanes::hungry`] says what is to be read, [`Lanes::feed`] takes it, and
//! [`Lanes::fail`] goes on without it.

use std::cmp::Ordering;
use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::lane::{Lane, LanePage, Row, State};
use super::saved::{Given, Saved, SavedLane};
use super::seen::{Key, Seen, digest};
use crate::source::{
    Count, CountMode, Direction, QueryFault, RecordsPage, RecordsPosition, RecordsQuery, SourceError,
};

/// Pages of one lane that are read for one page of ours: servers that answer empty pages are not read for ever.
pub(super) const READS_MOST: usize = 8;

/// The lanes of a list, and what was taken from them so far.
#[derive(Debug)]
pub(in crate::source) struct Lanes<Name> {
    direction: Direction,
    lanes: Vec<Lane<Name>>,
    rows: Vec<Row>,
    given: Option<Given>,
    since_failure: Option<Seen>,
    count: Counted,
    ended: bool,
    nameless: usize,
    dead_end: bool,
    /// Lanes whose rows come later than they should, because they failed before.
    behind: Vec<Name>,
}

/// What is to be read next of a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::source) struct Hungry<Name> {
    /// Which lane.
    pub(in crate::source) lane: usize,
    /// What it is a lane of.
    pub(in crate::source) name: Name,
    /// From which of the server's cursors.
    pub(in crate::source) cursor: Option<String>,
    /// Rows of that page that were given.
    pub(in crate::source) taken: usize,
}

/// A sum of counts, which is none as soon as one of them is missing.
#[derive(Debug, Clone, Copy)]
enum Counted {
    Known(Count),
    Sum(Option<Count>),
    Unknown,
}

impl<Name: Clone + Serialize + DeserializeOwned> Lanes<Name> {
    /// A list from its first record on. Of equal rows, that of the later lane is the greater.
    pub(in crate::source) fn start(lanes: impl IntoIterator<Item = Name>, direction: Direction) -> Self {
        let lanes = lanes.into_iter().map(SavedLane::start).collect();
        Self::resume(Saved { count: None, ended: false, given: None, since_failure: None, lanes }, direction)
    }

    /// A list that goes on.
    pub(in crate::source) fn resume(saved: Saved<Name>, direction: Direction) -> Self {
        let lanes = saved.lanes.into_iter().map(|saved| Lane {
            saved,
            reads: 0,
            has_given: false,
            state: State::Unread,
        });
        Self {
            direction,
            lanes: lanes.collect(),
            rows: Vec::new(),
            given: saved.given,
            since_failure: saved.since_failure,
            count: match saved.count {
                Some((value, accuracy)) => Counted::Known(Count { value, accuracy }),
                // What ended is not counted any more.
                None if saved.ended => Counted::Unknown,
                None => Counted::Sum(None),
            },
            ended: saved.ended,
            nameless: 0,
            dead_end: false,
            behind: Vec::new(),
        }
    }

    /// The lanes of a page that follows another of the same question.
    pub(in crate::source) fn after(
        query: &RecordsQuery,
        position: &RecordsPosition,
    ) -> Result<Self, SourceError> {
        let (question, place) = position.0.split_once(' ').unwrap_or_default();
        let saved = Saved::open(&RecordsPosition(place.to_owned()))?;
        if u64::from_str_radix(question, 16) != Ok(query.fingerprint()) {
            return Err(SourceError::CorrectQuery {
                fault: QueryFault::MismatchedCursor,
                problem: "the cursor is of another stream, connection, filter or order".to_owned(),
                hint: "List again without `cursor`.".to_owned(),
            });
        }
        Ok(Self::resume(saved, query.direction))
    }

    /// The page of a question, with what it asked for and a position that is good for it alone.
    pub(in crate::source) fn page_of(self, query: &RecordsQuery) -> RecordsPage
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

    /// Whether servers need not count, since it is known or cannot be.
    pub(in crate::source) fn is_counted(&self) -> bool {
        !matches!(self.count, Counted::Sum(_))
    }

    /// The lanes whose next row is not known.
    pub(in crate::source) fn hungry(&self) -> Vec<Hungry<Name>> {
        let lanes = self.lanes.iter().enumerate();
        lanes
            .filter(|(_, lane)| matches!(lane.state, State::Unread) && lane.reads < READS_MOST)
            .map(|(number, lane)| Hungry {
                lane: number,
                name: lane.saved.name.clone(),
                cursor: lane.saved.cursor.clone(),
                taken: lane.saved.taken,
            })
            .collect()
    }

    /// A page that was read for a lane.
    pub(in crate::source) fn feed(&mut self, lane: usize, page: LanePage) {
        let Some(lane) = self.lanes.get_mut(lane) else { return };
        lane.reads += 1;
        self.count = match (self.count, page.count) {
            // A lane is counted with its first page.
            (Counted::Sum(sum), _) if lane.reads > 1 => Counted::Sum(sum),
            (Counted::Sum(sum), Some(more)) => Counted::Sum(Some(sum.map_or(more, |sum| sum.and(more)))),
            (Counted::Sum(_), None) => Counted::Unknown,
            (known, _) => known,
        };
        if std::mem::take(&mut lane.saved.late) {
            self.behind.push(lane.saved.name.clone());
        }
        // A cursor that leads back to itself, or in a circle, would be read for ever.
        let is_asked = |next: &String| {
            page.has_more != Some(false)
                && !next.is_empty()
                && Some(next) != lane.saved.cursor.as_ref()
                && !lane.saved.trail.clone().comes_back_to(next)
        };
        let next = page.next.filter(is_asked);
        self.dead_end |= next.is_none() && page.has_more == Some(true);
        self.nameless += lane.read(page.rows, next);
        self.ended |= matches!(lane.state, State::Ended);
    }

    /// A lane that could not be read. The list goes on without it, and asks it again for its next page.
    pub(in crate::source) fn fail(&mut self, lane: usize) {
        let Some(lane) = self.lanes.get_mut(lane) else { return };
        lane.state = State::Failed;
        self.remember();
    }

    /// A lane that has nothing to give.
    pub(in crate::source) fn end(&mut self, lane: usize) {
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.state = State::Ended;
        }
    }

    /// Takes rows until there are `limit`, or until the next one is not known.
    pub(in crate::source) fn take(&mut self, limit: usize) {
        self.pass_over_the_slow();
        while self.rows.len() < limit && !self.lanes.iter().any(|lane| lane.is_awaited(READS_MOST)) {
            let heads =
                self.lanes.iter().enumerate().filter_map(|(number, lane)| Some((lane.head()?, number)));
            let first = match self.direction {
                Direction::Ascending => heads.min(),
                Direction::Descending => heads.max(),
            };
            let Some(lane) = first.map(|(_, number)| number).and_then(|number| self.lanes.get_mut(number))
            else {
                return;
            };
            let (row, nameless) = lane.pop();
            let named = row.map(|(row, name)| (digest([name.as_bytes()]), row, name));
            // What a lane gave before it gives again when its pages overlap.
            let named = named.filter(|(key, ..)| lane.saved.recent.insert(*key));
            self.nameless += nameless;
            self.ended |= matches!(lane.state, State::Ended);
            if let Some((key, row, name)) = named
                && self.is_new(&row, key, name)
            {
                self.rows.push(row);
            }
        }
    }

    /// A lane that gave only empty pages does not hide what the others have. Its rows come late.
    fn pass_over_the_slow(&mut self) {
        let is_slow = |lane: &Lane<Name>| matches!(lane.state, State::Unread) && !lane.is_awaited(READS_MOST);
        if self.lanes.len() > 1 && self.lanes.iter().any(is_slow) {
            self.remember();
            for lane in self.lanes.iter_mut().filter(|lane| is_slow(lane)) {
                lane.saved.late = true;
            }
        }
    }

    /// From here on rows can come late, so it is remembered what was given.
    fn remember(&mut self) {
        let seen = self.since_failure.get_or_insert_default();
        for name in self.given.iter().flat_map(|given| &given.names) {
            seen.insert(digest([name.as_bytes()]));
        }
    }

    /// Whether a row is given for the first time. Copies of a row, which another lane or a careless server gives
    /// again, have the same place, unless the lane comes late.
    fn is_new(&mut self, row: &Row, key: Key, name: String) -> bool {
        if !self.since_failure.as_mut().is_none_or(|seen| seen.insert(key)) {
            return false;
        }
        let order = self.given.as_ref().map(|given| match self.direction {
            Direction::Ascending => row.place.cmp(&given.place),
            Direction::Descending => given.place.cmp(&row.place),
        });
        match (&mut self.given, order) {
            (Some(given), Some(Ordering::Equal)) => {
                let is_new = !given.names.contains(&name);
                given.names.extend(is_new.then_some(name));
                is_new
            }
            // It comes late, and what was given last may still have copies.
            (Some(_), Some(Ordering::Less)) if self.since_failure.is_some() => true,
            _ => {
                self.given = Some(Given { place: row.place.clone(), names: vec![name] });
                true
            }
        }
    }

    /// Whether this many rows were taken.
    pub(in crate::source) fn has(&self, rows: usize) -> bool {
        self.rows.len() >= rows
    }

    /// The page, and where the next one starts. Lanes that failed do not make a list go on by themselves.
    pub(in crate::source) fn page(self) -> RecordsPage
    where
        Name: fmt::Display,
    {
        let failed = self.lanes.iter().any(|lane| matches!(lane.state, State::Failed));
        let count = match self.count {
            Counted::Known(count) => Some(count),
            Counted::Sum(sum) => sum.map(|sum| if failed { sum.at_least() } else { sum }),
            Counted::Unknown => None,
        };
        let goes_on = self.lanes.iter().any(|lane| matches!(lane.state, State::Unread | State::Read { .. }));
        let lanes = self.lanes.into_iter().filter(|lane| !matches!(lane.state, State::Ended));
        let lanes = lanes.map(|Lane { saved, state, .. }| {
            let late = saved.late || matches!(state, State::Failed);
            SavedLane { late, ..saved }
        });
        let saved = Saved {
            count: count.map(|count| (count.value, count.accuracy)),
            ended: self.ended,
            given: self.given,
            since_failure: self.since_failure,
            lanes: lanes.collect(),
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
        let (places, rows) = self.rows.into_iter().map(|row| (row.place.value().clone(), row.change)).unzip();
        RecordsPage { rows, places, next, has_more, count, notes, ..RecordsPage::default() }
    }
}

/// How many rows have names that no handle can carry.
pub(in crate::source) fn left_out(nameless: usize) -> Option<String> {
    match nameless {
        0 => None,
        1 => Some("1 record is left out, because no handle can name it.".to_owned()),
        many => Some(format!("{many} records are left out, because no handle can name them.")),
    }
}
