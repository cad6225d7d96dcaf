//! Pages of several lanes as one list, without loss and without repetition.
//!
//! A lane is a list of its own: pages in its own order, of one connection or of one source. A row is given when
//! it is the first of the lanes' first rows, so a lane whose next row is not known holds the list up until its
//! page is read. Nothing here reads: [`Lanes::hungry`] says what is to be read, [`Lanes::feed`] takes it, and
//! [`Lanes::fail`] goes on without it.

use std::cmp::Ordering;
use std::collections::VecDeque;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::place::Place;
use super::saved::{Given, Saved, SavedLane};
use super::seen::{Seen, digest};
use crate::source::{Change, Count, Direction, RecordsPage};

/// Pages of one lane that are read for one page of ours: servers that answer empty pages are not read for ever.
const READS_MOST: usize = 8;

/// Names that find the place in a page again: one of them is still there when the others were deleted.
const LAST_KEPT: usize = 4;

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
}

#[derive(Debug)]
struct Lane<Name> {
    saved: SavedLane<Name>,
    reads: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    Unread,
    Read { rows: VecDeque<Option<Row>>, next: Option<String> },
    Failed,
    Ended,
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
        let lanes = saved.lanes.into_iter().map(|saved| Lane { saved, reads: 0, state: State::Unread });
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
        let seen = self.since_failure.get_or_insert_default();
        for name in self.given.iter().flat_map(|given| &given.names) {
            seen.insert(digest([name.as_bytes()]));
        }
    }

    /// A lane that has nothing to give.
    pub(in crate::source) fn end(&mut self, lane: usize) {
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.state = State::Ended;
        }
    }

    /// Takes rows until there are `limit`, or until the next one is not known.
    pub(in crate::source) fn take(&mut self, limit: usize) {
        while self.rows.len() < limit && !self.lanes.iter().any(|lane| matches!(lane.state, State::Unread)) {
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
            self.nameless += nameless;
            self.ended |= matches!(lane.state, State::Ended);
            let new = row.filter(|row| self.is_new(row));
            self.rows.extend(new);
        }
    }

    /// Whether a row is given for the first time. Copies of a row, which another lane or a careless server gives
    /// again, have the same place, unless the lane comes late.
    fn is_new(&mut self, row: &Row) -> bool {
        let name = name(&row.change);
        let is_new_since = |seen: &mut Seen| seen.insert(digest([name.as_bytes()]));
        if !self.since_failure.as_mut().is_none_or(is_new_since) {
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
        Name: std::fmt::Display,
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

impl<Name> Lane<Name> {
    /// Takes up a page behind the rows that were given of it, and says how many rows without a name it passed.
    fn read(&mut self, rows: Vec<Option<Row>>, next: Option<String>) -> usize {
        let row_name = |row: &Option<Row>| row.as_ref().map(|row| name(&row.change));
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

    fn head(&self) -> Option<&Place> {
        match &self.state {
            State::Read { rows, .. } => rows.front()?.as_ref().map(|row| &row.place),
            State::Unread | State::Failed | State::Ended => None,
        }
    }

    /// The first row, and how many without a name came after it.
    fn pop(&mut self) -> (Option<Row>, usize) {
        let State::Read { rows, .. } = &mut self.state else { return (None, 0) };
        let row = rows.pop_front().flatten();
        self.saved.taken += 1;
        self.saved.last.extend(row.as_ref().map(|row| name(&row.change)));
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

/// What tells rows of one lane apart: their connection and key.
fn name(change: &Change) -> String {
    let address = match change {
        Change::Present(record) => &record.address,
        Change::Deleted { address, .. } => address,
    };
    let connection = address.connection.as_ref().map_or("", |connection| connection.as_str());
    format!("{connection}/{}", address.record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::RecordAddress;
    use crate::record::{Record, RecordData};
    use crate::source::RecordsPosition;
    use crate::source::merge::sort_value;
    use proptest::prelude::*;

    /// A row of a server: its key, when it is, and whether its name can be a handle's.
    type Sent = (String, u8);

    /// A row of a connection; none when its name can be no handle's.
    fn row(connection: &str, key: &str, at: u8) -> Option<Row> {
        let address = RecordAddress {
            connection: connection.parse().ok(),
            stream: "s".parse().unwrap(),
            record: key.parse().ok().filter(|_| !key.starts_with('.'))?,
        };
        let change = Change::Present(Box::new(Record {
            address,
            data: RecordData::from_iter([("at".to_owned(), at.into())]),
            emitted_at: None,
            connector_key: None,
            display_name: None,
            record_url: None,
            expanded: Vec::new(),
        }));
        Some(Row { place: Place::of(&change, sort_value(&change, Some("at"))), change })
    }

    /// A page as a server cuts it: cursors are `after:<key>`.
    fn page(rows: &[Sent], connection: &str, cursor: Option<&str>, limit: usize) -> LanePage {
        let start = cursor.map_or(0, |cursor| {
            rows.iter().position(|(key, _)| cursor == format!("after:{key}")).unwrap() + 1
        });
        let sent: Vec<_> = rows.iter().skip(start).take(limit).collect();
        let has_more = start + sent.len() < rows.len();
        LanePage {
            next: sent.last().filter(|_| has_more).map(|(key, _)| format!("after:{key}")),
            has_more: Some(has_more),
            count: Some(Count::exact(rows.len() as u64)),
            rows: sent.iter().map(|(key, at)| row(connection, key, *at)).collect(),
        }
    }

    /// Reads on from a position, and gives back the page and the reads it took.
    fn read(
        servers: &[Vec<Sent>],
        position: Option<&RecordsPosition>,
        limit: usize,
        server_limit: usize,
        direction: Direction,
    ) -> (RecordsPage, usize) {
        let mut lanes = match position {
            None => Lanes::start((0..servers.len()).map(|number| format!("c{number}")), direction),
            Some(position) => Lanes::resume(Saved::<String>::open(position).unwrap(), direction),
        };
        let mut reads = 0;
        while !lanes.has(limit) && !lanes.hungry().is_empty() {
            for Hungry { lane, name, cursor, .. } in lanes.hungry() {
                let rows = &servers[name.trim_start_matches('c').parse::<usize>().unwrap()];
                lanes.feed(lane, page(rows, &name, cursor.as_deref(), server_limit));
                reads += 1;
            }
            lanes.take(limit);
        }
        (lanes.page(), reads)
    }

    fn names(page: &RecordsPage) -> Vec<String> {
        let name = |row: &Change| match row {
            Change::Present(record) => format!(
                "{} {}/{}",
                record.data["at"],
                record.address.connection.as_ref().unwrap(),
                record.address.record
            ),
            Change::Deleted { .. } => panic!("nothing was deleted"),
        };
        page.rows.iter().map(name).collect()
    }

    fn everything(
        servers: &[Vec<Sent>],
        limits: &[usize],
        server_limit: usize,
        direction: Direction,
    ) -> (Vec<String>, usize) {
        let (mut all, mut nameless, mut position) = (Vec::new(), 0, None);
        for limit in limits.iter().cycle().take(500) {
            let (page, _) = read(servers, position.as_ref(), *limit, server_limit, direction);
            assert!(page.rows.len() <= *limit);
            all.extend(names(&page));
            nameless += page
                .notes
                .iter()
                .filter_map(|note| note.split(' ').next()?.parse::<usize>().ok())
                .sum::<usize>();
            assert_eq!(page.has_more, page.next.is_some());
            let total = servers.iter().map(|rows| rows.len() as u64).sum();
            assert_eq!(page.count, Some(Count::exact(total)));
            position = page.next;
            if position.is_none() {
                return (all, nameless);
            }
        }
        panic!("the list does not end");
    }

    /// As a server of this order gives them.
    fn sorted(mut rows: Vec<Sent>, direction: Direction) -> Vec<Sent> {
        rows.sort_by(|one, other| (one.1, &one.0).cmp(&(other.1, &other.0)));
        if direction == Direction::Descending {
            rows.reverse();
        }
        rows
    }

    proptest! {
        #[test]
        fn no_row_is_lost_or_repeated(
            times in proptest::collection::vec(proptest::collection::vec(0_u8..6, 0..30), 1..5),
            limits in proptest::collection::vec(1_usize..12, 1..4),
            server_limit in 1_usize..12,
            descending in any::<bool>(),
        ) {
            let direction = if descending { Direction::Descending } else { Direction::Ascending };
            let rows = |times: Vec<u8>| {
                let rows = times.into_iter().enumerate().map(|(number, at)| (format!("k{number:03}"), at));
                sorted(rows.collect(), direction)
            };
            let servers: Vec<Vec<Sent>> = times.into_iter().map(rows).collect();
            let (all, _) = everything(&servers, &limits, server_limit, direction);
            let mut expect: Vec<(u8, String, usize)> = servers
                .iter()
                .enumerate()
                .flat_map(|(number, rows)| rows.iter().map(move |(key, at)| (*at, key.clone(), number)))
                .collect();
            expect.sort();
            if descending {
                expect.reverse();
            }
            let expect: Vec<String> = expect.into_iter().map(|(at, key, number)| format!("{at} c{number}/{key}")).collect();
            prop_assert_eq!(all, expect);
        }
    }

    #[test]
    fn rows_without_a_name_are_passed_and_counted_once() {
        let row = |key: &str| (key.to_owned(), 1);
        let servers =
            [vec![row("../1"), row("a"), row("./b"), row("c"), row("../2")], vec![row("b"), row("../3")]];
        for limit in 1..6 {
            for server_limit in 1..8 {
                let (all, nameless) = everything(&servers, &[limit], server_limit, Direction::Ascending);
                assert_eq!(all, ["1 c0/a", "1 c1/b", "1 c0/c"], "{limit}");
                assert_eq!(nameless, 4, "{limit} {server_limit}");
            }
        }
    }

    #[test]
    fn rows_added_above_the_place_repeat_nothing() {
        let rows: Vec<Sent> = (0..10).map(|number| (format!("k{number}"), 9 - number)).collect();
        let (first, _) = read(std::slice::from_ref(&rows), None, 3, 10, Direction::Descending);
        let mut grown = vec![("new".to_owned(), 99)];
        grown.extend(rows);
        let (second, _) = read(&[grown], first.next.as_ref(), 3, 10, Direction::Descending);
        assert_eq!(names(&second), ["6 c0/k3", "5 c0/k4", "4 c0/k5"]);
    }

    #[test]
    fn rows_deleted_above_the_place_lose_nothing() {
        let rows: Vec<Sent> = (0..10).map(|number| (format!("k{number}"), 9 - number)).collect();
        let (first, _) = read(std::slice::from_ref(&rows), None, 3, 10, Direction::Descending);
        let without = |gone: &[&str]| -> Vec<Sent> {
            rows.iter().filter(|(key, _)| !gone.contains(&key.as_str())).cloned().collect()
        };
        for gone in [vec!["k2"], vec!["k0"], vec!["k1", "k2"]] {
            let (second, _) = read(&[without(&gone)], first.next.as_ref(), 2, 10, Direction::Descending);
            assert_eq!(names(&second), ["6 c0/k3", "5 c0/k4"], "{gone:?}");
        }
        // When nothing that was given is left, the number of rows is all there is to go by.
        let other: Vec<Sent> = (0..10).map(|number| (format!("other{number}"), 9 - number)).collect();
        let (second, _) = read(&[other], first.next.as_ref(), 2, 10, Direction::Descending);
        assert_eq!(names(&second), ["6 c0/other3", "5 c0/other4"]);
    }

    #[test]
    fn a_page_that_is_shorter_than_it_was_goes_on_with_the_next() {
        let rows: Vec<Sent> = (0..10).map(|number| (format!("k{number}"), 9 - number)).collect();
        let (first, _) = read(std::slice::from_ref(&rows), None, 5, 8, Direction::Descending);
        let (second, reads) =
            read(std::slice::from_ref(&rows), first.next.as_ref(), 2, 2, Direction::Descending);
        assert_eq!(names(&second), ["4 c0/k5", "3 c0/k6"]);
        assert_eq!(reads, 4);
    }

    #[test]
    fn a_server_that_leads_nowhere_is_left() {
        let mut lanes = Lanes::start([String::new()], Direction::Descending);
        let empty = |next: &str| LanePage { next: Some(next.to_owned()), ..LanePage::default() };
        let mut reads = 0;
        while let Some(hungry) = lanes.hungry().pop() {
            reads += 1;
            lanes.feed(hungry.lane, empty(&format!("page {reads}")));
            lanes.take(5);
        }
        assert_eq!(reads, READS_MOST);
        // It can be asked further, but not by this call.
        let page = lanes.page();
        assert!(page.rows.is_empty() && page.next.is_some());

        let mut lanes = Lanes::start([String::new()], Direction::Descending);
        lanes.feed(0, empty("same"));
        lanes.feed(0, empty("same"));
        assert_eq!(lanes.hungry(), []);
        assert_eq!(lanes.page().next, None);
    }

    #[test]
    fn a_server_that_leads_in_a_circle_is_left() {
        let mut lanes = Lanes::start(["c".to_owned()], Direction::Descending);
        let mut reads = 0;
        loop {
            let Some(hungry) = lanes.hungry().pop() else {
                // As a client would, page after page.
                match lanes.page().next {
                    Some(next) => {
                        lanes = Lanes::resume(Saved::<String>::open(&next).unwrap(), Direction::Descending)
                    }
                    None => break,
                }
                continue;
            };
            reads += 1;
            assert!(reads < 100);
            let next = format!("page {}", reads % 3);
            lanes.feed(hungry.lane, LanePage { next: Some(next), ..LanePage::default() });
            lanes.take(5);
        }
    }

    #[test]
    fn copies_in_another_lane_are_given_once_across_pages() {
        let rows: Vec<Sent> = (0..6).map(|number| (format!("k{number}"), number / 3)).collect();
        let copies = |cursor: Option<&str>| {
            let limit = if cursor.is_some() { 4 } else { 2 };
            LanePage { count: None, ..page(&rows, "c", cursor, limit) }
        };
        for limit in 1..8 {
            let (mut all, mut position) = (Vec::new(), None);
            loop {
                let mut lanes = match &position {
                    None => Lanes::start(["a".to_owned(), "b".to_owned()], Direction::Ascending),
                    Some(position) => {
                        Lanes::resume(Saved::<String>::open(position).unwrap(), Direction::Ascending)
                    }
                };
                while !lanes.has(limit) && !lanes.hungry().is_empty() {
                    for Hungry { lane, cursor, .. } in lanes.hungry() {
                        lanes.feed(lane, copies(cursor.as_deref()));
                    }
                    lanes.take(limit);
                }
                let page = lanes.page();
                all.extend(names(&page));
                position = page.next;
                if position.is_none() {
                    break;
                }
            }
            let expect: Vec<String> = rows.iter().map(|(key, at)| format!("{at} c/{key}")).collect();
            assert_eq!(all, expect, "{limit}");
        }
    }

    #[test]
    fn a_lane_that_fails_holds_nothing_up_and_comes_late() {
        let rows = |name: &str| -> Vec<Sent> { (0..4).map(|n| (format!("{name}{n}"), n)).collect() };
        let mut lanes = Lanes::start(["a".to_owned(), "b".to_owned()], Direction::Ascending);
        lanes.feed(0, page(&rows("a"), "a", None, 10));
        lanes.fail(1);
        lanes.take(2);
        let first = lanes.page();
        assert_eq!(names(&first), ["0 a/a0", "1 a/a1"]);
        assert_eq!(first.count, Some(Count::exact(4).at_least()));
        let mut lanes =
            Lanes::resume(Saved::<String>::open(&first.next.unwrap()).unwrap(), Direction::Ascending);
        lanes.feed(0, page(&rows("a"), "a", None, 10));
        lanes.feed(1, page(&rows("b"), "b", None, 10));
        lanes.take(10);
        let second = lanes.page();
        assert_eq!(names(&second), ["0 b/b0", "1 b/b1", "2 a/a2", "2 b/b2", "3 a/a3", "3 b/b3"]);
        assert!(second.notes[0].starts_with("b did not answer for an earlier page"));
        // Alone it does not make the list go on.
        let mut lanes = Lanes::start(["a".to_owned()], Direction::Ascending);
        lanes.fail(0);
        lanes.take(2);
        assert_eq!(lanes.page().next, None);
    }

    #[test]
    fn more_without_a_way_there_is_said() {
        let mut lanes = Lanes::start([String::new()], Direction::Descending);
        lanes.feed(0, LanePage { has_more: Some(true), ..LanePage::default() });
        let page = lanes.page();
        assert!(page.has_more && page.next.is_none());
        assert_eq!(page.notes.len(), 1);
    }
}
