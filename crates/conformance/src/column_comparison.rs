//! Comparison of the answers from columns with those from the JSON of the records, for random records and queries.
//!
//! `FETCHWELL_COLUMN_CASES` sets the number of queries, which are a few hundred otherwise, and `FETCHWELL_COLUMN_SEED` the first
//! seed.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use fetchwell_core::record::RecordData;
use fetchwell_ranking::relational::allowance::Allowance;
use fetchwell_ranking::relational::interrupt::{Interrupt, ReadBounds};
use fetchwell_ranking::relational::tables::Tables;
use fetchwell_ranking::relational::{aggregate, list};
use fetchwell_source::RecordsPosition;
use fetchwell_source::contract::{Change, IncomingRecord, NewConnection, no_progress};
use fetchwell_source::sync::ImportTarget;

use crate::random_queries::{Random, RandomRecords, StoreQuery};

/// Number of queries of each store.
const QUERIES: usize = 150;

/// Number of queries of a usual run.
const CASES: usize = 450;

/// Record to be written, or to be deleted if it has no data.
pub type RecordChange = (String, Option<RecordData>);

/// Answers to one query.
#[derive(Debug)]
pub struct ComparedAnswers {
    /// Answer from the JSON of all records.
    pub plain: String,
    /// Answer of tables that have columns.
    pub from_columns: String,
    /// True if columns can be opened.
    pub has_columns: bool,
}

/// An empty store that is tested.
pub trait ComparedStore {
    /// Writes records into the stream `s` of a connection, creating it.
    fn write(&mut self, connection: &str, records: Vec<RecordChange>);

    /// Leaves the columns as they are from now on.
    fn keep_columns(&mut self);

    /// Answers a query in both ways, at one state of the store.
    fn answers(&self, query: &StoreQuery) -> ComparedAnswers;
}

/// Writes records into the stream `s` of a connection of a database.
pub fn write(target: &impl ImportTarget, connection: &str, records: Vec<RecordChange>) {
    let connection = NewConnection {
        connection_id: connection.parse().unwrap(),
        connector_key: "files".to_owned(),
        display_name: None,
        manifest: None,
    };
    let mut writer = target.open(&connection, None, &no_progress).unwrap();
    for (key, data) in records {
        let change = match data {
            Some(data) => Change::Put { data, emitted_at: None },
            None => Change::Delete { deleted_at: None },
        };
        let incoming = IncomingRecord { stream: "s".parse().unwrap(), key: key.parse().unwrap(), change };
        writer.write(incoming, 100).unwrap();
    }
    writer.finish(&no_progress).unwrap();
}

/// Answers a query as text. A list is read to its third page.
pub fn answer<T: Tables<Error: Debug>>(tables: &T, query: &StoreQuery) -> String {
    let (interrupt, allowance) = (Interrupt::default(), Allowance::unlimited());
    let bounds = ReadBounds { interrupt: &interrupt, allowance: &allowance };
    let problem = |error: T::Error| format!("{error:?}");
    match query {
        StoreQuery::Aggregate(query) => match aggregate::aggregate(tables, query, bounds) {
            Ok(answer) => format!("{answer:?}"),
            Err(error) => problem(error),
        },
        StoreQuery::Records(query) => {
            let (mut pages, mut after): (_, Option<RecordsPosition>) = (String::new(), None);
            for _ in 0..3 {
                match list::page(tables, query, after.as_ref(), bounds) {
                    Ok(page) => {
                        let keys: Vec<String> = page.rows.iter().map(|row| format!("{row:?}")).collect();
                        let (places, count, notes) = (page.places, page.count, page.notes);
                        pages.push_str(&format!("{keys:?} {places:?} {count:?} {notes:?}\n"));
                        after = page.next;
                    }
                    Err(error) => return problem(error),
                }
                if after.is_none() {
                    break;
                }
            }
            pages
        }
    }
}

/// Compares the answers to random queries about random records. Returns the number of queries that columns answered.
fn compare(store: &mut impl ComparedStore, seed: u64, queries: usize) -> usize {
    let random = &mut Random(seed);
    // A list in the order of a large stream asks the columns after its first records.
    let count = if seed.is_multiple_of(3) { 400 } else { 20 + random.below(300) };
    let records = RandomRecords::new(random, count);
    let put = |(key, data): &(String, RecordData)| (key.clone(), Some(data.clone()));
    let (first, second) = records.records.split_at(count / 2);
    store.write("one", first.iter().map(put).collect());
    store.write("two", first.iter().take(20).map(put).collect());
    store.write("one", second.iter().map(put).collect());
    let mut changes = Vec::new();
    for (key, _) in &records.records {
        match random.below(12) {
            0 => changes.push((key.clone(), None)),
            1 => changes.push((key.clone(), Some(records.data(random)))),
            _ => {}
        }
    }
    // The columns lack the changes of every second store.
    if seed.is_multiple_of(2) {
        store.keep_columns();
    }
    store.write("one", changes);
    let stream = "s".parse().unwrap();
    let mut answered = 0;
    for _ in 0..queries {
        let query = StoreQuery::new(random, &records, &stream);
        let ComparedAnswers { plain, from_columns, has_columns } = store.answers(&query);
        answered += usize::from(has_columns);
        assert_eq!(plain, from_columns, "seed {seed}: {query:?}");
    }
    answered
}

/// Returns a number that a long run sets.
#[expect(clippy::disallowed_methods, reason = "a long run sets it for this test")]
fn setting<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

/// Compares the answers of new stores to random queries, on two threads.
pub fn check<S: ComparedStore>(new_store: impl Fn() -> S + Sync) {
    let (cases, first) = (setting("FETCHWELL_COLUMN_CASES"), setting::<u64>("FETCHWELL_COLUMN_SEED"));
    let (cases, first) = (cases.unwrap_or(CASES), first.unwrap_or(1));
    let (next, answered) = (AtomicU64::new(first), AtomicUsize::new(0));
    let end = first + cases.div_ceil(QUERIES) as u64;
    let compare_next = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                break;
            }
            answered.fetch_add(compare(&mut new_store(), seed, QUERIES), Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(compare_next);
        compare_next();
        other.join().unwrap();
    });
    let answered = answered.into_inner();
    assert!(answered * 2 > cases, "columns must be used, not only {answered} times");
}
