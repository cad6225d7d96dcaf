//! Walks over a federation to its end. Its sources are in memory and answer late, in any order, or not at all.
//!
//! The rows must not depend on the order of answers, so every walk runs twice over the same data with different delays.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_callers::CallContext;
use fetchwell_core::handle::{RecordAddress, SourceName};
use fetchwell_core::record::{
    ConnectionSchema, Hit, HitId, Record, RecordData, Schema, SortValue, StreamSchema, Window,
};
use fetchwell_source::federation::{Federation, Member};
use fetchwell_source::{
    AggregateAnswer, AggregateQuery, BoundSource, Change, Count, Direction, RecordQuery, RecordsPage,
    RecordsPosition, RecordsQuery, SearchPage, SearchPosition, SearchQuery, Source, SourceError, Start,
    StreamAnswer, StreamQuery, WindowQuery,
};
use proptest::prelude::*;
use proptest::test_runner::Config;

/// A record, by the number of its connection and of its key.
type Row = (usize, usize);

/// The health of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Healthy,
    /// It fails every call.
    Broken,
    /// It fails the calls with a set bit, never three in a row, so that its circuit stays closed.
    Flaky(u32),
}

/// A generated source.
#[derive(Clone)]
struct Account {
    /// Its records in the order of its search results.
    rows: Vec<Row>,
    /// The maximum number of rows in one answer.
    page: usize,
    health: Health,
}

/// Prints one line, so that a failing case fits on a screen.
impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { rows, page, health } = self;
        f.write_str(&format!("{health:?} of {page} at once: {rows:?}"))
    }
}

/// The source of an account. It waits before each answer.
#[derive(Debug)]
struct InMemory {
    name: SourceName,
    account: Account,
    delays: u64,
    calls: AtomicUsize,
}

impl InMemory {
    /// Waits, and fails if this call is to fail.
    async fn answer(&self, limit: usize, start: Option<&str>) -> Result<std::ops::Range<usize>, SourceError> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        for _ in 0..scattered(self.delays, call) % 7 {
            tokio::task::yield_now().await;
        }
        let fails = match self.account.health {
            Health::Healthy => false,
            Health::Broken => true,
            Health::Flaky(calls) => calls >> (call % 32) & 1 == 1,
        };
        if fails {
            return Err(SourceError::Unreachable { problem: "it is made to fail".to_owned() });
        }
        let start = start.map_or(0, |start| start.parse().unwrap());
        Ok(start..(start + limit.min(self.account.page)).min(self.account.rows.len()))
    }

    fn next(&self, range: &std::ops::Range<usize>) -> Option<String> {
        (range.end < self.account.rows.len()).then(|| range.end.to_string())
    }
}

/// Returns a number that looks random.
fn scattered(seed: u64, number: usize) -> u64 {
    (seed ^ (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33
}

fn address((connection, key): Row) -> RecordAddress {
    RecordAddress {
        connection: Some(format!("c{connection}").parse().unwrap()),
        stream: "s".parse().unwrap(),
        record: format!("k{key:02}").parse().unwrap(),
    }
}

/// Returns the value that a record is sorted by: many have the same one, and some have none.
fn sort_value((connection, key): Row) -> SortValue {
    match (connection + key * 3) % 5 {
        0 => SortValue::Missing,
        number => SortValue::Text(format!("2026-04-0{number}")),
    }
}

/// Returns the sort key of a list in ascending order.
fn place(row: Row) -> (SortValue, String, usize) {
    (sort_value(row), format!("k{:02}", row.1), row.0)
}

#[async_trait]
impl Source for InMemory {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn identity(&self) -> String {
        self.name.to_string()
    }

    async fn schema(&self, _context: &CallContext) -> Result<Schema, SourceError> {
        if self.account.health == Health::Broken {
            return Err(SourceError::Unreachable { problem: "it is made to fail".to_owned() });
        }
        let mut connections: BTreeSet<usize> = self.account.rows.iter().map(|row| row.0).collect();
        // A schema without the stream would exclude the source from the calls after the schema was read.
        if connections.is_empty() {
            connections.insert(0);
        }
        let connection = |number: usize| ConnectionSchema {
            connection_id: format!("c{number}").parse().unwrap(),
            source: None,
            display_name: None,
            connector_key: None,
            streams: vec![StreamSchema { name: "s".parse().unwrap(), record_count: None }],
            routes: Vec::new(),
        };
        Ok(Schema { connections: connections.into_iter().map(connection).collect(), ..Schema::default() })
    }

    async fn search(&self, _context: &CallContext, query: &SearchQuery) -> Result<SearchPage, SourceError> {
        let range = self.answer(query.limit, query.position.as_ref().map(|start| start.0.as_str())).await?;
        let hit = |row: &Row| Hit {
            time: match sort_value(*row) {
                SortValue::Text(time) => Some(time),
                _ => None,
            },
            ..Hit::new(HitId::Record(address(*row)), format!("{row:?}"))
        };
        Ok(SearchPage {
            next: self.next(&range).map(SearchPosition),
            hits: self.account.rows[range].iter().map(hit).collect(),
            count: Some(Count::exact(self.account.rows.len() as u64)),
            ..SearchPage::default()
        })
    }

    async fn records(
        &self,
        _context: &CallContext,
        query: &RecordsQuery,
    ) -> Result<RecordsPage, SourceError> {
        let start = match &query.start {
            Start::First => None,
            Start::After(position) => Some(position.0.as_str()),
            Start::Changes(_) => panic!("no test asks for changes"),
        };
        let range = self.answer(query.limit, start).await?;
        let next = self.next(&range).map(RecordsPosition);
        let mut rows = self.account.rows.clone();
        rows.sort_by_key(|row| place(*row));
        if query.direction == Direction::Descending {
            rows.reverse();
        }
        let rows = &rows[range];
        let record = |row: &Row| Change::Present(Box::new(Record::new(address(*row), RecordData::new())));
        Ok(RecordsPage {
            rows: rows.iter().map(record).collect(),
            places: rows.iter().filter(|_| query.placed).map(|row| sort_value(*row)).collect(),
            has_more: next.is_some(),
            next,
            ..RecordsPage::default()
        })
    }

    async fn stream(
        &self,
        _context: &CallContext,
        _query: &StreamQuery,
    ) -> Result<StreamAnswer, SourceError> {
        panic!("no test asks for a stream")
    }

    async fn record(&self, _context: &CallContext, _query: &RecordQuery) -> Result<Record, SourceError> {
        panic!("no test asks for a record")
    }

    async fn window(&self, _context: &CallContext, _query: &WindowQuery) -> Result<Window, SourceError> {
        panic!("no test asks for a window")
    }

    async fn aggregate(
        &self,
        _context: &CallContext,
        _query: &AggregateQuery,
    ) -> Result<AggregateAnswer, SourceError> {
        panic!("no test asks for an aggregate")
    }
}

fn federation(accounts: &[Account], delays: u64) -> BoundSource {
    let member = |(number, account): (usize, &Account)| Member {
        source: Arc::new(InMemory {
            name: format!("source-{number}").parse().unwrap(),
            account: account.clone(),
            delays: scattered(delays, number),
            calls: AtomicUsize::new(0),
        }),
        deadline: Duration::from_secs(60),
    };
    Federation::new("all".parse().unwrap(), accounts.iter().enumerate().map(member).collect()).into()
}

/// The rows of one page, and the sources that it named as unavailable.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Page {
    rows: Vec<Row>,
    missing: Vec<String>,
}

fn row_of(address: &RecordAddress) -> Row {
    let number = |text: &str| text.trim_start_matches(['c', 'k']).parse().unwrap();
    let connection = address.connection.as_ref().unwrap().as_str();
    // If two sources have a connection, its id is printed with the source.
    let (own, _source) = connection.split_once('@').unwrap_or((connection, ""));
    (number(own), number(address.record.as_str()))
}

/// The list that is walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum List {
    Search,
    Records(Direction),
}

/// Returns one page from a position on, and the next position.
async fn page(
    federation: &BoundSource,
    list: List,
    limit: usize,
    start: Option<String>,
) -> Result<(Page, Option<String>), SourceError> {
    let (rows, next, missing) = match list {
        List::Search => {
            let query = SearchQuery { position: start.map(SearchPosition), ..SearchQuery::new("x", limit) };
            let page = federation.search(&query).await?;
            let address = |hit: Hit| match hit.id {
                HitId::Record(address) => row_of(&address),
                HitId::Opaque(_) | HitId::Nameless => panic!("{hit:?} is no record"),
            };
            let rows: Vec<Row> = page.hits.into_iter().map(address).collect();
            (rows, page.next.map(|next| next.0), page.unavailable)
        }
        List::Records(direction) => {
            let start = start.map_or(Start::First, |start| Start::After(RecordsPosition(start)));
            let query = RecordsQuery { direction, start, ..RecordsQuery::new("s".parse().unwrap(), limit) };
            let page = federation.records(&query).await?;
            let address = |change: &Change| match change {
                Change::Present(record) => row_of(&record.address),
                Change::Deleted { address, .. } => row_of(address),
            };
            let rows: Vec<Row> = page.rows.iter().map(address).collect();
            (rows, page.next.map(|next| next.0), page.unavailable)
        }
    };
    let missing = missing.into_iter().map(|missing| missing.source.to_string()).collect();
    Ok((Page { rows, missing }, next))
}

/// Returns all pages to the end. After an error the call is repeated as a model would, up to a few times.
async fn walk(accounts: &[Account], list: List, limits: &[usize], delays: u64) -> Vec<Page> {
    let federation = federation(accounts, delays);
    let (mut pages, mut start, mut errors) = (Vec::new(), None, 0);
    for limit in limits.iter().cycle().take(MAX_PAGES) {
        match page(&federation, list, *limit, start.clone()).await {
            Ok((page, next)) => {
                assert!(page.rows.len() <= *limit, "{} rows of {limit}", page.rows.len());
                pages.push(page);
                start = match next {
                    Some(next) => Some(next),
                    None => return pages,
                };
            }
            Err(_) if errors == MAX_ERRORS => return pages,
            Err(_) => errors += 1,
        }
    }
    panic!("no end after {MAX_PAGES} pages: {pages:?}")
}

/// Number of pages after which a walk over a hundred rows cannot end any more.
const MAX_PAGES: usize = 1_000;

/// Number of errors in one walk after which no client would try again.
const MAX_ERRORS: usize = 4;

/// Walks twice, checks the rules that hold for every walk, and returns the rows as they were shown.
fn check_walk(accounts: &[Account], list: List, limits: &[usize], delays: [u64; 2]) -> Vec<Row> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let [pages, again] = delays.map(|delays| runtime.block_on(walk(accounts, list, limits, delays)));
    assert_eq!(pages, again, "the list depends on who answers first");
    let shown: Vec<Row> = pages.iter().flat_map(|page| page.rows.iter().copied()).collect();
    let of = |is: fn(Health) -> bool| -> BTreeSet<Row> {
        accounts.iter().filter(|account| is(account.health)).flat_map(|a| a.rows.iter().copied()).collect()
    };
    let healthy = of(|health| health == Health::Healthy);
    let lost: Vec<&Row> = healthy.iter().filter(|row| !shown.contains(row)).collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
    let reachable = of(|health| health != Health::Broken);
    assert!(shown.iter().all(|row| reachable.contains(row)), "invented: {shown:?}");
    shown
}

fn check_once(shown: &[Row]) {
    let different: BTreeSet<Row> = shown.iter().copied().collect();
    assert_eq!(different.len(), shown.len(), "shown again: {shown:?}");
}

fn check_order(shown: &[Row], direction: Direction) {
    let order = |row: &Row| (sort_value(*row), row.1);
    let is_ordered = match direction {
        Direction::Ascending => shown.is_sorted_by_key(order),
        Direction::Descending => shown.iter().rev().is_sorted_by_key(order),
    };
    assert!(is_ordered, "out of order: {shown:?}");
}

fn accounts() -> impl Strategy<Value = Vec<Account>> {
    let health = prop_oneof![
        4 => Just(Health::Healthy),
        1 => Just(Health::Broken),
        2 => any::<u32>().prop_map(|calls| Health::Flaky(calls & 0x5b6d_b6db)),
    ];
    // Adjacent sources share a connection, so that both have copies of some of its records.
    let account = (proptest::collection::vec((0..2_usize, 0..20_usize), 0..30), 1..9_usize, health);
    proptest::collection::vec(account, 0..=8).prop_map(|accounts| {
        let account = |(number, (rows, page, health)): (usize, (Vec<Row>, usize, Health))| {
            let mut seen = BTreeSet::new();
            let rows = rows.into_iter().map(|(connection, key)| (connection + number, key));
            Account { rows: rows.filter(|row| seen.insert(*row)).collect(), page, health }
        };
        accounts.into_iter().enumerate().map(account).collect()
    })
}

fn limits() -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(1..12_usize, 1..5)
}

fn directions() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::Ascending), Just(Direction::Descending)]
}

proptest! {
    #![proptest_config(Config { cases: 200, failure_persistence: None, ..Config::default() })]

    #[test]
    fn a_search_shows_every_row_of_the_healthy_once(
        accounts in accounts(),
        limits in limits(),
        delays in any::<[u64; 2]>(),
    ) {
        check_once(&check_walk(&accounts, List::Search, &limits, delays));
    }

    #[test]
    fn a_list_shows_every_row_of_the_healthy_once_and_in_order(
        accounts in accounts(),
        limits in limits(),
        delays in any::<[u64; 2]>(),
        direction in directions(),
    ) {
        let shown = check_walk(&accounts, List::Records(direction), &limits, delays);
        check_once(&shown);
        // Rows of a source that failed before come late and out of order.
        if !accounts.iter().any(|account| matches!(account.health, Health::Flaky(_))) {
            check_order(&shown, direction);
        }
    }
}

fn account(rows: &[Row], health: Health) -> Account {
    Account { rows: rows.to_vec(), page: 1, health }
}

#[test]
fn a_copy_that_comes_late_is_not_shown_again() {
    let accounts = [
        account(&[(0, 1), (0, 4), (1, 14), (0, 6), (0, 3)], Health::Healthy),
        account(&[(1, 14)], Health::Flaky(1)),
    ];
    let shown = check_walk(&accounts, List::Records(Direction::Descending), &[4], [0, 0]);
    check_once(&shown);
}

#[test]
fn a_late_row_does_not_bring_back_a_copy() {
    let accounts = [
        account(&[(3, 17)], Health::Healthy),
        account(&[(3, 12)], Health::Flaky(1)),
        account(&[(6, 11)], Health::Healthy),
        account(&[(6, 11), (7, 14)], Health::Healthy),
    ];
    let shown = check_walk(&accounts, List::Records(Direction::Descending), &[3], [0, 0]);
    check_once(&shown);
}

#[tokio::test]
async fn the_first_page_alternates_between_two_sources() {
    let accounts = [0, 1].map(|connection| Account {
        rows: (0..25).map(|key| (connection, key)).collect(),
        page: 100,
        health: Health::Healthy,
    });
    let federation = federation(&accounts, 0);
    let (page, next) = page(&federation, List::Search, 25, None).await.unwrap();
    let of = |connection: usize| page.rows.iter().filter(|row| row.0 == connection).count();
    assert_eq!([of(0), of(1)].iter().max(), Some(&13), "{page:?}");
    assert_eq!(of(0) + of(1), 25);
    // At every place, each source has at most one row more than the other.
    for (place, pair) in page.rows.chunks_exact(2).enumerate() {
        assert_ne!(pair[0].0, pair[1].0, "{place}: {page:?}");
    }
    assert!(next.is_some());
}
