//! Pages of several connections as one list, without loss and without repetition.
//!
//! Each connection is a lane: its own pages in its own order. A row is given when it is the first of the
//! lanes' first rows, so a lane whose next row is not known holds the list up until its page is read. Nothing
//! here reads: [`Lanes::hungry`] says what is to be read, [`Lanes::feed`] takes it.

use std::collections::VecDeque;

use super::order::Place;
use super::position::{Saved, SavedLane};
use super::wire::RecordList;
use crate::handle::ConnectionId;
use crate::source::{Change, Count, Direction, RecordsPage};

/// Pages of one lane that are read for one page of ours: servers that answer empty pages are not read for ever.
const READS_MOST: usize = 8;

/// Keys that find the place in a page again: one of them is still there when the others were deleted.
const LAST_KEPT: usize = 4;

/// The lanes of a list, and what was taken from them so far.
#[derive(Debug)]
pub(super) struct Lanes {
    direction: Direction,
    lanes: Vec<Lane>,
    rows: Vec<Change>,
    count: Counted,
    ended: bool,
    nameless: usize,
    dead_end: bool,
}

/// What is to be read next of a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hungry {
    /// Which lane.
    pub(super) lane: usize,
    /// Of which connection.
    pub(super) connection: Option<ConnectionId>,
    /// From which of the server's cursors.
    pub(super) cursor: Option<String>,
    /// The field it is ordered by.
    pub(super) by: Option<String>,
    /// The fields of the view that is asked, when they are to be asked by name.
    pub(super) view: Option<Vec<String>>,
}

#[derive(Debug)]
struct Lane {
    saved: SavedLane,
    reads: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    Unread,
    Read { items: VecDeque<Option<(Place, Change)>>, next: Option<String> },
    Ended,
}

/// A sum of counts, which is none as soon as one of them is missing.
#[derive(Debug, Clone, Copy)]
enum Counted {
    Known(Count),
    Sum(Option<Count>),
    Unknown,
}

impl Lanes {
    /// A list from its first record on. Of equal rows, that of the later lane is the greater.
    pub(super) fn start(lanes: Vec<SavedLane>, direction: Direction) -> Self {
        Self::resume(Saved { count: None, ended: false, lanes }, direction)
    }

    /// A list that goes on.
    pub(super) fn resume(saved: Saved, direction: Direction) -> Self {
        let lanes = saved.lanes.into_iter().map(|saved| Lane { saved, reads: 0, state: State::Unread });
        Self {
            direction,
            lanes: lanes.collect(),
            rows: Vec::new(),
            count: match saved.count {
                Some((value, accuracy)) => Counted::Known(Count { value, accuracy }),
                // What ended is not counted any more.
                None if saved.ended => Counted::Unknown,
                None => Counted::Sum(None),
            },
            ended: saved.ended,
            nameless: 0,
            dead_end: false,
        }
    }

    /// Whether servers need not count, since it is known or cannot be.
    pub(super) fn is_counted(&self) -> bool {
        !matches!(self.count, Counted::Sum(_))
    }

    /// The lanes whose next row is not known.
    pub(super) fn hungry(&self) -> Vec<Hungry> {
        let lanes = self.lanes.iter().enumerate();
        lanes
            .filter(|(_, lane)| matches!(lane.state, State::Unread) && lane.reads < READS_MOST)
            .map(|(number, lane)| Hungry {
                lane: number,
                connection: lane.saved.connection.clone(),
                cursor: lane.saved.cursor.clone(),
                by: lane.saved.by.clone(),
                view: lane.saved.view.clone(),
            })
            .collect()
    }

    /// A page that was read for a lane.
    pub(super) fn feed(&mut self, lane: usize, page: RecordList) {
        let Some(lane) = self.lanes.get_mut(lane) else { return };
        lane.reads += 1;
        self.count = match (self.count, page.count) {
            // A lane is counted with its first page.
            (Counted::Sum(sum), _) if lane.reads > 1 => Counted::Sum(sum),
            (Counted::Sum(sum), Some(more)) => {
                Counted::Sum(Some(sum.map_or(more, |sum: Count| sum.and(more))))
            }
            (Counted::Sum(_), None) => Counted::Unknown,
            (known, _) => known,
        };
        // A cursor that leads back to itself would be read for ever.
        let next = page
            .next_cursor
            .filter(|next| page.has_more != Some(false) && Some(next) != lane.saved.cursor.as_ref());
        self.dead_end |= next.is_none() && page.has_more == Some(true);
        self.nameless += lane.read(page.items, next);
        self.ended |= matches!(lane.state, State::Ended);
    }

    /// Takes rows until there are `limit`, or until the next one is not known.
    pub(super) fn take(&mut self, limit: usize) {
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
            self.rows.extend(row);
            self.nameless += nameless;
            self.ended |= matches!(lane.state, State::Ended);
        }
    }

    /// Whether this many rows were taken.
    pub(super) fn has(&self, rows: usize) -> bool {
        self.rows.len() >= rows
    }

    /// The page, and where the next one starts.
    pub(super) fn page(self) -> RecordsPage {
        let count = match self.count {
            Counted::Known(count) | Counted::Sum(Some(count)) => Some(count),
            Counted::Sum(None) | Counted::Unknown => None,
        };
        let lanes = self.lanes.into_iter().filter(|lane| !matches!(lane.state, State::Ended));
        let saved = Saved {
            count: count.map(|count| (count.value, count.accuracy)),
            ended: self.ended,
            lanes: lanes.map(|lane| lane.saved).collect(),
        };
        let next = if saved.lanes.is_empty() { None } else { saved.seal() };
        let mut notes: Vec<String> = left_out(self.nameless).into_iter().collect();
        if next.is_none() && self.dead_end {
            notes.push("The record server says that there is more and gives no way to read on.".to_owned());
        }
        let has_more = next.is_some() || self.dead_end;
        RecordsPage { rows: self.rows, next, has_more, count, notes, ..RecordsPage::default() }
    }
}

/// How many rows have names that no handle can carry.
pub(super) fn left_out(nameless: usize) -> Option<String> {
    match nameless {
        0 => None,
        1 => Some("1 record is left out, because no handle can name it.".to_owned()),
        many => Some(format!("{many} records are left out, because no handle can name them.")),
    }
}

impl Lane {
    /// Takes up a page behind the rows that were given of it, and says how many rows without a name it passed.
    fn read(&mut self, items: Vec<Option<Change>>, next: Option<String>) -> usize {
        let was_given = |item: &Option<Change>| {
            item.as_ref().is_some_and(|change| self.saved.last.iter().any(|last| last == key(change)))
        };
        // Rows without a name are passed together with the row before them.
        let behind =
            |place| place + 1 + items.iter().skip(place + 1).take_while(|item| item.is_none()).count();
        let newest = self.saved.last.back().map(String::as_str);
        let given = match items.iter().rposition(was_given) {
            // The page was longer when it was given, and the place is behind its end.
            Some(place) if self.saved.taken > items.len() && items.get(place).map(name) != Some(newest) => {
                self.saved.taken
            }
            Some(place) => behind(place),
            None => self.saved.taken,
        };
        if given > items.len() {
            // What is missing from it stands on the next.
            self.saved.taken = given - items.len();
            self.state = match next {
                Some(next) => {
                    self.saved.cursor = Some(next);
                    State::Unread
                }
                None => State::Ended,
            };
            return 0;
        }
        let by = self.saved.by.as_deref();
        let placed = |item: Option<Change>| item.map(|change| (Place::of(&change, by), change));
        self.saved.taken = given;
        self.state = State::Read { items: items.into_iter().skip(given).map(placed).collect(), next };
        self.settle()
    }

    fn head(&self) -> Option<&Place> {
        match &self.state {
            State::Read { items, .. } => items.front()?.as_ref().map(|(place, _)| place),
            State::Unread | State::Ended => None,
        }
    }

    /// The first row, and how many without a name came after it.
    fn pop(&mut self) -> (Option<Change>, usize) {
        let State::Read { items, .. } = &mut self.state else { return (None, 0) };
        let row = items.pop_front().flatten().map(|(_, change)| change);
        self.saved.taken += 1;
        self.saved.last.extend(row.as_ref().map(|row| key(row).to_owned()));
        if self.saved.last.len() > LAST_KEPT {
            self.saved.last.pop_front();
        }
        (row, self.settle())
    }

    /// Passes rows without a name, and turns the page at its end.
    fn settle(&mut self) -> usize {
        let State::Read { items, next } = &mut self.state else { return 0 };
        let mut nameless = 0;
        while let Some(None) = items.front() {
            items.pop_front();
            nameless += 1;
        }
        self.saved.taken += nameless;
        if items.is_empty() {
            let next = next.take();
            self.state = if next.is_some() { State::Unread } else { State::Ended };
            let SavedLane { connection, by, view, .. } = std::mem::take(&mut self.saved);
            self.saved = SavedLane { connection, by, view, cursor: next, ..SavedLane::default() };
        }
        nameless
    }
}

fn name(item: &Option<Change>) -> Option<&str> {
    item.as_ref().map(key)
}

fn key(change: &Change) -> &str {
    match change {
        Change::Present(record) => record.address.record.as_str(),
        Change::Deleted { address, .. } => address.record.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::source::RecordsPosition;
    use crate::source::pdpp::wire;

    /// A row of a server: its key, when it is, and whether its name can be a handle's.
    type Row = (String, u8);

    /// A page as a server cuts it: cursors are `after:<key>`.
    fn page(rows: &[Row], connection: &str, cursor: Option<&str>, limit: usize) -> RecordList {
        let start = cursor.map_or(0, |cursor| {
            rows.iter().position(|(key, _)| cursor == format!("after:{key}")).unwrap() + 1
        });
        let items: Vec<_> = rows.iter().skip(start).take(limit).collect();
        let has_more = start + items.len() < rows.len();
        let next = items.last().filter(|_| has_more).map(|(key, _)| format!("after:{key}"));
        let items: Vec<_> = items
            .iter()
            .map(|(key, at)| json!({"id": key, "connection_id": connection, "data": {"at": at}}))
            .collect();
        let body = json!({"data": items, "has_more": has_more, "next_cursor": next,
            "meta": {"count": {"kind": "exact", "value": rows.len()}}});
        wire::records(body.to_string().as_bytes(), &"s".parse().unwrap(), None).unwrap()
    }

    /// Reads on from a position, and gives back the page and the reads it took.
    fn read(
        servers: &[Vec<Row>],
        position: Option<&RecordsPosition>,
        limit: usize,
        server_limit: usize,
        direction: Direction,
    ) -> (RecordsPage, usize) {
        let lane = |number: usize| SavedLane {
            connection: format!("c{number}").parse().ok(),
            by: Some("at".to_owned()),
            ..SavedLane::default()
        };
        let mut lanes = match position {
            None => Lanes::start((0..servers.len()).map(lane).collect(), direction),
            Some(position) => Lanes::resume(Saved::open(position).unwrap(), direction),
        };
        let mut reads = 0;
        while !lanes.has(limit) && !lanes.hungry().is_empty() {
            for Hungry { lane, connection, cursor, .. } in lanes.hungry() {
                let connection = connection.unwrap();
                let rows = &servers[connection.as_str().trim_start_matches('c').parse::<usize>().unwrap()];
                lanes.feed(lane, page(rows, connection.as_str(), cursor.as_deref(), server_limit));
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
        servers: &[Vec<Row>],
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
    fn sorted(mut rows: Vec<Row>, direction: Direction) -> Vec<Row> {
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
            let servers: Vec<Vec<Row>> = times.into_iter().map(rows).collect();
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
        let rows: Vec<Row> = (0..10).map(|number| (format!("k{number}"), 9 - number)).collect();
        let (first, _) = read(std::slice::from_ref(&rows), None, 3, 10, Direction::Descending);
        let mut grown = vec![("new".to_owned(), 99)];
        grown.extend(rows);
        let (second, _) = read(&[grown], first.next.as_ref(), 3, 10, Direction::Descending);
        assert_eq!(names(&second), ["6 c0/k3", "5 c0/k4", "4 c0/k5"]);
    }

    #[test]
    fn rows_deleted_above_the_place_lose_nothing() {
        let rows: Vec<Row> = (0..10).map(|number| (format!("k{number}"), 9 - number)).collect();
        let (first, _) = read(std::slice::from_ref(&rows), None, 3, 10, Direction::Descending);
        let without = |gone: &[&str]| -> Vec<Row> {
            rows.iter().filter(|(key, _)| !gone.contains(&key.as_str())).cloned().collect()
        };
        for gone in [vec!["k2"], vec!["k0"], vec!["k1", "k2"]] {
            let (second, _) = read(&[without(&gone)], first.next.as_ref(), 2, 10, Direction::Descending);
            assert_eq!(names(&second), ["6 c0/k3", "5 c0/k4"], "{gone:?}");
        }
        // When nothing that was given is left, the number of rows is all there is to go by.
        let other: Vec<Row> = (0..10).map(|number| (format!("other{number}"), 9 - number)).collect();
        let (second, _) = read(&[other], first.next.as_ref(), 2, 10, Direction::Descending);
        assert_eq!(names(&second), ["6 c0/other3", "5 c0/other4"]);
    }

    #[test]
    fn a_page_that_is_shorter_than_it_was_goes_on_with_the_next() {
        let rows: Vec<Row> = (0..10).map(|number| (format!("k{number}"), 9 - number)).collect();
        let (first, _) = read(std::slice::from_ref(&rows), None, 5, 8, Direction::Descending);
        let (second, reads) =
            read(std::slice::from_ref(&rows), first.next.as_ref(), 2, 2, Direction::Descending);
        assert_eq!(names(&second), ["4 c0/k5", "3 c0/k6"]);
        assert_eq!(reads, 4);
    }

    #[test]
    fn a_server_that_leads_nowhere_is_left() {
        let mut lanes = Lanes::start(vec![SavedLane::default()], Direction::Descending);
        let empty = |next: &str| RecordList { next_cursor: Some(next.to_owned()), ..RecordList::default() };
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

        let mut lanes = Lanes::start(vec![SavedLane::default()], Direction::Descending);
        lanes.feed(0, empty("same"));
        lanes.feed(0, empty("same"));
        assert_eq!(lanes.hungry(), []);
        assert_eq!(lanes.page().next, None);
    }

    #[test]
    fn more_without_a_way_there_is_said() {
        let mut lanes = Lanes::start(vec![SavedLane::default()], Direction::Descending);
        lanes.feed(0, RecordList { has_more: Some(true), ..RecordList::default() });
        let page = lanes.page();
        assert!(page.has_more && page.next.is_none());
        assert_eq!(page.notes.len(), 1);
    }
}
