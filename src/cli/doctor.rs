//! `fetchwell doctor`: what is configured, whether it works, and what to do when it does not.

use std::time::{Duration, Instant};

use clap::Args;
use jiff::Timestamp;
use serde::Serialize;

use super::failure::Failure;
use super::open::{SourceArgs, open_source, runtime};
use super::print::{BAD, FAINT, GOOD, Printer, grouped, safe};
use crate::config::{Environment, FileSettings, SourcePlace};
use crate::record::Schema;
use crate::source::pdpp::Credentials;
use crate::source::store::{IndexState, Store, StoreError};
use crate::source::{SearchQuery, Source};

/// Check the configured source, and say what to do when something is wrong.
#[derive(Debug, Args)]
pub(super) struct Doctor {
    #[command(flatten)]
    source: SourceArgs,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    ok: bool,
    found: String,
}

impl Doctor {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let checks = self.checks(environment)?;
        let wrong = checks.iter().filter(|check| !check.ok).count();
        if printer.json {
            printer.value(&checks);
        } else {
            for Check { name, ok, found } in &checks {
                let (style, mark) = if *ok { (GOOD, "ok   ") } else { (BAD, "wrong") };
                printer
                    .line(format_args!("{style}{mark}{style:#} {name:<12} {FAINT}{}{FAINT:#}", safe(found)));
            }
        }
        match wrong {
            0 => Ok(()),
            1 => Err(Failure::new("1 check failed; do what it says and run doctor again")),
            more => Err(Failure::new(format!(
                "{more} checks failed; do what the first says and run doctor again"
            ))),
        }
    }

    /// Checks one thing after the other, until one is wrong: the later ones need the earlier.
    fn checks(&self, environment: &Environment) -> Result<Vec<Check>, Failure> {
        let mut checks = Vec::new();
        let settings = match self.source.settings() {
            Ok(settings) => settings,
            Err(failure) => return Ok(vec![Check { name: "settings", ok: false, found: failure.message }]),
        };
        checks.push(Check { name: "settings", ok: true, found: described(&settings) });
        if let SourcePlace::Provider { url, cache_root, .. } = &settings.source.place {
            let credential = Credentials::of(url, cache_root).check(Timestamp::now());
            let (ok, found) = match &credential {
                Ok(None) => (true, "valid, without an end".to_owned()),
                Ok(Some(until)) => {
                    (true, format!("valid for {} s", until.as_second() - Timestamp::now().as_second()))
                }
                Err(error) => (false, format!("{error}; run `{}`", error.command())),
            };
            checks.push(Check { name: "credential", ok, found });
            if !ok {
                return Ok(checks);
            }
        }
        if let SourcePlace::Store { path } = &settings.source.place {
            let state =
                Store::open(settings.source.name.clone(), path).and_then(|store| store.complete_index());
            if let Ok(state) = state {
                checks.push(Check { name: "index", ok: true, found: described_index(state) });
            } else if let Err(error @ (StoreError::Index { .. } | StoreError::Unwritable { .. })) = state {
                checks.push(Check { name: "index", ok: false, found: error.to_string() });
                return Ok(checks);
            }
        }
        let source = match open_source(&settings.source, environment) {
            Ok(source) => source,
            Err(failure) => {
                checks.push(Check { name: "open", ok: false, found: failure.message });
                return Ok(checks);
            }
        };
        runtime()?.block_on(ask(source.as_ref(), &mut checks));
        Ok(checks)
    }
}

async fn ask(source: &dyn Source, checks: &mut Vec<Check>) {
    let started = Instant::now();
    let schema = source.schema().await;
    let took = started.elapsed();
    match schema {
        Ok(schema) => checks.push(Check { name: "connections", ok: true, found: counted(&schema, took) }),
        Err(error) => {
            checks.push(Check { name: "connections", ok: false, found: Failure::from(error).message });
            return;
        }
    }
    let query = SearchQuery::of("fetchwell doctor", 1);
    let started = Instant::now();
    let (ok, found) = match source.search(&query).await {
        Ok(page) if page.notes.iter().any(|note| note.contains("not searchable yet")) => {
            (true, page.notes.join("; "))
        }
        Ok(_) => (true, format!("answers in {} ms", started.elapsed().as_millis())),
        Err(error) => (false, Failure::from(error).message),
    };
    checks.push(Check { name: "search", ok, found });
}

fn described_index(state: IndexState) -> String {
    let records = |count: i64| grouped(count.unsigned_abs());
    match state {
        IndexState::Complete => "complete".to_owned(),
        IndexState::Completed(lacked) => format!("complete now; it lacked {} records", records(lacked)),
        IndexState::BeingWritten(behind) => {
            format!(
                "another process is writing to the store; {} records are not searchable yet",
                records(behind)
            )
        }
    }
}

fn described(settings: &FileSettings) -> String {
    let name = &settings.source.name;
    match &settings.source.place {
        SourcePlace::Store { path } => format!("{name}: the store {}", path.display()),
        SourcePlace::Provider { url, cache_root, deadline } => {
            format!(
                "{name}: {url}, credentials in {}, deadline {} s",
                cache_root.display(),
                deadline.as_secs()
            )
        }
    }
}

fn counted(schema: &Schema, took: Duration) -> String {
    let streams = schema.connections.iter().flat_map(|connection| &connection.streams);
    let records: u64 = streams.clone().filter_map(|stream| stream.record_count).sum();
    format!(
        "{} connections, {} streams, {} records, answered in {} ms",
        schema.connections.len(),
        streams.count(),
        grouped(records),
        took.as_millis()
    )
}
