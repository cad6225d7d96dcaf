//! Figures from columns compared with those from the JSON of the records.
//!
//! `FETCHWELL_FIGURE_CASES` sets the number of queries, which are a few hundred otherwise.

use std::path::Path;

use fetchwell_conformance::figures::{FigureQuery, FigureRecords, Random};
use fetchwell_core::record::RecordData;
use fetchwell_ranking::relational::aggregate;
use fetchwell_ranking::relational::allowance::Allowance;
use fetchwell_ranking::relational::interrupt::{Interrupt, ReadBounds};
use fetchwell_ranking::relational::list;
use fetchwell_ranking::relational::tables::Tables;
use fetchwell_source::RecordsPosition;
use fetchwell_source::contract::{Change, IncomingRecord, NewConnection, no_progress};
use fetchwell_source::sync::ImportTarget;

use super::super::SqliteSearch;
use super::IndexColumns;
use crate::SqliteTarget;
use crate::database::{Database, ReadError};
use crate::read::tables::SqliteTables;
use crate::write_lock::IndexLock;

/// Number of queries of each store.
const QUERIES: usize = 150;

/// Number of queries of a usual run.
const CASES: usize = 450;

fn write(path: &Path, connection: &str, records: Vec<(String, Option<RecordData>)>) {
    let connection = NewConnection {
        connection_id: connection.parse().unwrap(),
        connector_key: "files".to_owned(),
        display_name: None,
        manifest: None,
    };
    let mut writer = SqliteTarget::new(path).open(&connection, None, &no_progress).unwrap();
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
fn answer(tables: &SqliteTables<'_>, query: &FigureQuery) -> String {
    let (interrupt, allowance) = (Interrupt::default(), Allowance::unlimited());
    let bounds = ReadBounds { interrupt: &interrupt, allowance: &allowance };
    let problem = |error: ReadError| format!("{error:?}");
    match query {
        FigureQuery::Aggregate(query) => match aggregate::aggregate(tables, query, bounds) {
            Ok(answer) => format!("{answer:?}"),
            Err(error) => problem(error),
        },
        FigureQuery::Records(query) => {
            let (mut pages, mut after): (_, Option<RecordsPosition>) = (String::new(), None);
            for _ in 0..3 {
                match list::page(tables, query, after.as_ref(), bounds) {
                    Ok(page) => {
                        let keys: Vec<String> = page.rows.iter().map(|row| format!("{row:?}")).collect();
                        pages.push_str(&format!(
                            "{keys:?} {:?} {:?} {:?}\n",
                            page.places, page.count, page.notes
                        ));
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
fn compare(seed: u64, queries: usize) -> usize {
    let random = &mut Random(seed);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("figures.db");
    // A list in the order of a large stream asks the columns after its first records.
    let count = if seed.is_multiple_of(3) { 1_300 } else { 20 + random.below(300) };
    let records = FigureRecords::new(random, count);
    let put = |(key, data): &(String, RecordData)| (key.clone(), Some(data.clone()));
    let (first, second) = records.records.split_at(count / 2);
    write(&path, "one", first.iter().map(put).collect());
    write(&path, "two", first.iter().take(20).map(put).collect());
    write(&path, "one", second.iter().map(put).collect());
    let mut changes = Vec::new();
    for (key, _) in &records.records {
        match random.below(12) {
            0 => changes.push((key.clone(), None)),
            1 => changes.push((key.clone(), Some(records.data(random)))),
            _ => {}
        }
    }
    // The index lacks the changes of every second store.
    let lock = seed.is_multiple_of(2).then(|| IndexLock::try_take(&path).unwrap().unwrap());
    write(&path, "one", changes);
    let database = Database::open(&path).unwrap();
    let search = SqliteSearch::default();
    let columns = IndexColumns::new(&database, &search.index).of_all_streams();
    let stream = "s".parse().unwrap();
    let mut answered = 0;
    for _ in 0..queries {
        let query = FigureQuery::new(random, &records, &stream);
        let (plain, from_columns) = database
            .read(|sqlite| {
                let transaction = sqlite.unchecked_transaction()?;
                let plain = answer(&SqliteTables::new(&transaction), &query);
                let tables = SqliteTables::with_columns(&transaction, &columns);
                answered += usize::from(tables.columns(1, &["a"], None).unwrap().is_some());
                Ok((plain, answer(&tables, &query)))
            })
            .unwrap();
        assert_eq!(plain, from_columns, "seed {seed}: {query:?}");
    }
    drop(lock);
    answered
}

/// Returns a number that a long run sets.
#[expect(clippy::disallowed_methods, reason = "a long run sets it for this test")]
fn setting<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn columns_give_the_figures_of_the_records() {
    let (cases, first) = (setting("FETCHWELL_FIGURE_CASES"), setting::<u64>("FETCHWELL_FIGURE_SEED"));
    let cases = cases.unwrap_or(CASES);
    let mut answered = 0;
    for seed in 0..cases.div_ceil(QUERIES) as u64 {
        answered += compare(first.unwrap_or(1) + seed, QUERIES);
    }
    assert!(answered * 2 > cases, "columns must be used, not only {answered} times");
}
