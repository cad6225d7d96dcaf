//! Walks merged lists over servers that paginate, lose, repeat and fail.

use super::input::{InputPage, Row};
use super::merged_list::{MAX_READS, MergedList, PendingRead};
use super::position::MergePosition;
use super::sort_key::{SortKey, sort_value};
use crate::{Change, Count, Direction, RecordsPage, RecordsPosition};
use fetchwell_core::handle::RecordAddress;
use fetchwell_core::record::{Record, RecordData};
use proptest::prelude::*;

/// Row of a server: its key and its time.
type ServerRow = (String, u8);

/// Creates a row of a connection, or `None` if its name cannot be that of a handle.
fn row(connection: &str, key: &str, at: u8) -> Option<Row> {
    let address = RecordAddress {
        connection: connection.parse().ok(),
        stream: "s".parse().unwrap(),
        record: key.parse().ok().filter(|_| !key.starts_with('.'))?,
    };
    let data = RecordData::from_iter([("at".to_owned(), at.into())]);
    let change = Change::Present(Box::new(Record::new(address, data)));
    let connection = change.address().connection.clone();
    Some(Row::new(SortKey::new(&change, sort_value(&change, Some("at"))), change, connection.as_ref()))
}

/// Returns one page as a server splits it; cursors are `after:<key>`.
fn page(rows: &[ServerRow], connection: &str, cursor: Option<&str>, limit: usize) -> InputPage {
    let start = cursor
        .map_or(0, |cursor| rows.iter().position(|(key, _)| cursor == format!("after:{key}")).unwrap() + 1);
    let sent: Vec<_> = rows.iter().skip(start).take(limit).collect();
    let has_more = start + sent.len() < rows.len();
    InputPage {
        next: sent.last().filter(|_| has_more).map(|(key, _)| format!("after:{key}")),
        has_more: Some(has_more),
        count: Some(Count::exact(rows.len() as u64)),
        rows: sent.iter().map(|(key, at)| row(connection, key, *at)).collect(),
    }
}

/// Reads one page from a position. Returns it with the number of server pages read.
fn read(
    servers: &[Vec<ServerRow>],
    position: Option<&RecordsPosition>,
    limit: usize,
    server_limit: usize,
    direction: Direction,
) -> (RecordsPage, usize) {
    let mut list = match position {
        None => MergedList::start((0..servers.len()).map(|number| format!("c{number}")), direction),
        Some(position) => MergedList::resume(MergePosition::<String>::open(position).unwrap(), direction),
    };
    let mut reads = 0;
    while !list.has(limit) && !list.pending_reads().is_empty() {
        for PendingRead { input, name, cursor, .. } in list.pending_reads() {
            let rows = &servers[name.trim_start_matches('c').parse::<usize>().unwrap()];
            list.push_page(input, page(rows, &name, cursor.as_deref(), server_limit));
            reads += 1;
        }
        list.take(limit);
    }
    (list.page(), reads)
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
    servers: &[Vec<ServerRow>],
    limits: &[usize],
    server_limit: usize,
    direction: Direction,
) -> (Vec<String>, usize) {
    let (mut all, mut nameless, mut position) = (Vec::new(), 0, None);
    for limit in limits.iter().cycle().take(500) {
        let (page, _) = read(servers, position.as_ref(), *limit, server_limit, direction);
        assert!(page.rows.len() <= *limit);
        all.extend(names(&page));
        nameless +=
            page.notes.iter().filter_map(|note| note.split(' ').next()?.parse::<usize>().ok()).sum::<usize>();
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

/// Sorts rows as a server with this order does.
fn sorted(mut rows: Vec<ServerRow>, direction: Direction) -> Vec<ServerRow> {
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
        let servers: Vec<Vec<ServerRow>> = times.into_iter().map(rows).collect();
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
    let servers = [vec![row(".."), row("a"), row("."), row("c"), row("..")], vec![row("b"), row("..")]];
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
    let rows: Vec<ServerRow> = (0..10).map(|number| (format!("k{number}"), 9 - number)).collect();
    let (first, _) = read(std::slice::from_ref(&rows), None, 3, 10, Direction::Descending);
    let mut grown = vec![("new".to_owned(), 99)];
    grown.extend(rows);
    let (second, _) = read(&[grown], first.next.as_ref(), 3, 10, Direction::Descending);
    assert_eq!(names(&second), ["6 c0/k3", "5 c0/k4", "4 c0/k5"]);
}

#[test]
fn rows_deleted_above_the_place_lose_nothing() {
    let rows: Vec<ServerRow> = (0..10).map(|number| (format!("k{number}"), 9 - number)).collect();
    let (first, _) = read(std::slice::from_ref(&rows), None, 3, 10, Direction::Descending);
    let without = |gone: &[&str]| -> Vec<ServerRow> {
        rows.iter().filter(|(key, _)| !gone.contains(&key.as_str())).cloned().collect()
    };
    for gone in [vec!["k2"], vec!["k0"], vec!["k1", "k2"]] {
        let (second, _) = read(&[without(&gone)], first.next.as_ref(), 2, 10, Direction::Descending);
        assert_eq!(names(&second), ["6 c0/k3", "5 c0/k4"], "{gone:?}");
    }
    // If none of the returned rows is left, only the number of rows identifies the position.
    let other: Vec<ServerRow> = (0..10).map(|number| (format!("other{number}"), 9 - number)).collect();
    let (second, _) = read(&[other], first.next.as_ref(), 2, 10, Direction::Descending);
    assert_eq!(names(&second), ["6 c0/other3", "5 c0/other4"]);
}

#[test]
fn a_page_that_is_shorter_than_it_was_goes_on_with_the_next() {
    let rows: Vec<ServerRow> = (0..10).map(|number| (format!("k{number}"), 9 - number)).collect();
    let (first, _) = read(std::slice::from_ref(&rows), None, 5, 8, Direction::Descending);
    let (second, reads) = read(std::slice::from_ref(&rows), first.next.as_ref(), 2, 2, Direction::Descending);
    assert_eq!(names(&second), ["4 c0/k5", "3 c0/k6"]);
    assert_eq!(reads, 4);
}

#[test]
fn input_of_empty_pages_does_not_block_others() {
    let rows: Vec<ServerRow> = (0..4).map(|n| (format!("a{n}"), n)).collect();
    let mut list = MergedList::start(["a".to_owned(), "b".to_owned()], Direction::Ascending);
    list.push_page(0, page(&rows, "a", None, 10));
    for read in 0..MAX_READS {
        list.take(10);
        let next = Some(format!("page {read}"));
        list.push_page(1, InputPage { next, has_more: Some(true), ..InputPage::default() });
    }
    list.take(10);
    let page = list.page();
    assert_eq!(names(&page), ["0 a/a0", "1 a/a1", "2 a/a2", "3 a/a3"]);
    assert!(page.next.is_some());
}

#[test]
fn endless_empty_pages_are_not_read_forever() {
    let mut list = MergedList::start([String::new()], Direction::Descending);
    let empty = |next: &str| InputPage { next: Some(next.to_owned()), ..InputPage::default() };
    let mut reads = 0;
    while let Some(pending) = list.pending_reads().pop() {
        reads += 1;
        list.push_page(pending.input, empty(&format!("page {reads}")));
        list.take(5);
    }
    assert_eq!(reads, MAX_READS);
    // The list can be continued, but not within this call.
    let page = list.page();
    assert!(page.rows.is_empty() && page.next.is_some());

    let mut list = MergedList::start([String::new()], Direction::Descending);
    list.push_page(0, empty("same"));
    list.push_page(0, empty("same"));
    assert_eq!(list.pending_reads(), []);
    assert_eq!(list.page().next, None);
}

#[test]
fn cursor_cycle_ends_the_list() {
    let mut list = MergedList::start(["c".to_owned()], Direction::Descending);
    let mut reads = 0;
    loop {
        let Some(pending) = list.pending_reads().pop() else {
            // Continues as a client does, page after page.
            match list.page().next {
                Some(next) => {
                    list = MergedList::resume(
                        MergePosition::<String>::open(&next).unwrap(),
                        Direction::Descending,
                    );
                }
                None => break,
            }
            continue;
        };
        reads += 1;
        assert!(reads < 100);
        let next = format!("page {}", reads % 3);
        list.push_page(pending.input, InputPage { next: Some(next), ..InputPage::default() });
        list.take(5);
    }
}

#[test]
fn copies_in_another_input_are_returned_once_across_pages() {
    let rows: Vec<ServerRow> = (0..6).map(|number| (format!("k{number}"), number / 3)).collect();
    let copies = |cursor: Option<&str>| {
        let limit = if cursor.is_some() { 4 } else { 2 };
        InputPage { count: None, ..page(&rows, "c", cursor, limit) }
    };
    for limit in 1..8 {
        let (mut all, mut position) = (Vec::new(), None);
        loop {
            let mut list = match &position {
                None => MergedList::start(["a".to_owned(), "b".to_owned()], Direction::Ascending),
                Some(position) => {
                    MergedList::resume(MergePosition::<String>::open(position).unwrap(), Direction::Ascending)
                }
            };
            while !list.has(limit) && !list.pending_reads().is_empty() {
                for PendingRead { input, cursor, .. } in list.pending_reads() {
                    list.push_page(input, copies(cursor.as_deref()));
                }
                list.take(limit);
            }
            let page = list.page();
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
fn failed_input_does_not_block_and_comes_late() {
    let rows = |name: &str| -> Vec<ServerRow> { (0..4).map(|n| (format!("{name}{n}"), n)).collect() };
    let mut list = MergedList::start(["a".to_owned(), "b".to_owned()], Direction::Ascending);
    list.push_page(0, page(&rows("a"), "a", None, 10));
    list.fail(1);
    list.take(2);
    let first = list.page();
    assert_eq!(names(&first), ["0 a/a0", "1 a/a1"]);
    assert_eq!(first.count, Some(Count::exact(4).at_least()));
    let mut list = MergedList::resume(
        MergePosition::<String>::open(&first.next.unwrap()).unwrap(),
        Direction::Ascending,
    );
    list.push_page(0, page(&rows("a"), "a", None, 10));
    list.push_page(1, page(&rows("b"), "b", None, 10));
    list.take(10);
    let second = list.page();
    assert_eq!(names(&second), ["0 b/b0", "1 b/b1", "2 a/a2", "2 b/b2", "3 a/a3", "3 b/b3"]);
    assert!(second.notes[0].starts_with("b did not answer for an earlier page"));
    // A failed input alone does not cause a next page.
    let mut list = MergedList::start(["a".to_owned()], Direction::Ascending);
    list.fail(0);
    list.take(2);
    assert_eq!(list.page().next, None);
}

#[test]
fn has_more_without_a_cursor_is_noted() {
    let mut list = MergedList::start([String::new()], Direction::Descending);
    list.push_page(0, InputPage { has_more: Some(true), ..InputPage::default() });
    let page = list.page();
    assert!(page.has_more && page.next.is_none());
    assert_eq!(page.notes.len(), 1);
}
