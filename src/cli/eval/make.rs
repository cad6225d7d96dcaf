//! `fetchwell eval make`: reads records of a source and makes labelled questions from them.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use fetchwell_callers::CallContext;
use fetchwell_core::handle::{ConnectionId, Handle, StreamName};
use fetchwell_core::record::{Record, RecordData, authored_at, field_named, own_title};
use fetchwell_core::terminal::output::note;
use fetchwell_lab::evaluation::{LabelledQuestion, TextRecord, make_questions};
use fetchwell_source::{Change, RecordsQuery, Source, SourceError, Start};
use serde::Serialize;
use serde_json::Value;
use tempfile::NamedTempFile;

use crate::app::failure::Failure;
use crate::app::open::{AS_IT_IS, joined, open_sources, runtime};
use crate::app::settings::SourceArgs;
use crate::cli::print::Printer;
use crate::config::Environment;

/// Maximum number of records that questions are made from, which are held in memory.
const MAX_RECORDS: usize = 20_000;

/// Number of records of a page.
const PAGE: usize = 100;

/// Maximum depth of the texts in a record.
const MAX_DEPTH: usize = 8;

/// Fields with the author of a record, the preferred first.
const AUTHOR_FIELDS: [&str; 7] = ["author", "from", "sender", "creator", "owner", "user", "assignee"];

/// Make labelled questions from the records of a store.
#[derive(Debug, Args)]
pub(super) struct Make {
    #[command(flatten)]
    source: SourceArgs,

    /// The new file. It contains words of your records.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// Maximum number of questions of a kind.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    per_kind: u16,

    /// The seed: the same seed and records give the same questions.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Report of the command.
#[derive(Debug, Serialize)]
struct MakeReport {
    records: usize,
    questions: usize,
    kinds: BTreeMap<&'static str, usize>,
}

/// A stream of a connection.
#[derive(Debug)]
struct Place {
    connection: ConnectionId,
    stream: StreamName,
}

impl Make {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let settings = self.source.settings(environment)?;
        let source = joined(open_sources(&settings, environment, AS_IT_IS)?, settings.call_deadline)?;
        let (records, has_more) = runtime()?.block_on(read_records(source.source()))?;
        if has_more {
            note(&format_args!(
                "there are more than {MAX_RECORDS} records: questions are made from the newest of each stream, and others \
                 may answer them too"
            ));
        }
        let count = records.len();
        let questions = make_questions(records, usize::from(self.per_kind), self.seed);
        if questions.is_empty() {
            return Err(Failure::new(format!(
                "{count} records are too few or too short to ask questions about"
            )));
        }
        write(&self.out, &questions).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                Failure::with_code(&format!("{} exists; choose another --out", self.out.display()), 1)
            }
            _ => Failure::with_code(&format!("{}: {error}", self.out.display()), 1),
        })?;
        let mut report = MakeReport { records: count, questions: questions.len(), kinds: BTreeMap::new() };
        questions.iter().for_each(|question| *report.kinds.entry(question.kind).or_default() += 1);
        report.print(printer);
        Ok(())
    }
}

impl MakeReport {
    fn print(&self, printer: Printer) {
        if printer.json {
            printer.value(self);
            return;
        }
        let mut rows = vec![vec!["kind".to_owned(), "questions".to_owned()]];
        rows.extend(self.kinds.iter().map(|(kind, count)| vec![(*kind).to_owned(), count.to_string()]));
        printer.table(&rows);
        printer.line(format_args!("{} questions about {} records", self.questions, self.records));
    }
}

/// Writes the questions to a new file with mode 0600.
fn write(path: &Path, questions: &[LabelledQuestion]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let unfinished = NamedTempFile::new_in(folder)?;
    let mut file = io::BufWriter::new(unfinished.as_file());
    for question in questions {
        serde_json::to_writer(&mut file, question)?;
        file.write_all(b"\n")?;
    }
    file.flush()?;
    drop(file);
    unfinished.persist_noclobber(path)?;
    Ok(())
}

/// Reads records of all streams, each up to an equal share. Returns them and whether there are more.
async fn read_records(source: &dyn Source) -> Result<(Vec<TextRecord>, bool), SourceError> {
    let schema = source.schema(&CallContext::default()).await?;
    let places: Vec<Place> = schema
        .connections
        .into_iter()
        .flat_map(|connection| {
            let id = connection.connection_id;
            connection
                .streams
                .into_iter()
                .map(move |stream| Place { connection: id.clone(), stream: stream.name })
        })
        .collect();
    let (mut records, mut has_more) = (Vec::new(), false);
    for (number, place) in places.iter().enumerate() {
        // A small stream leaves its share to the streams after it.
        let share = (MAX_RECORDS - records.len()) / (places.len() - number);
        has_more |= read_stream(source, place, share, &mut records).await?;
    }
    Ok((records, has_more))
}

/// Reads at most `max_records` records of a stream. Returns true if it has more.
async fn read_stream(
    source: &dyn Source,
    place: &Place,
    max_records: usize,
    records: &mut Vec<TextRecord>,
) -> Result<bool, SourceError> {
    let mut query = RecordsQuery {
        connection: Some(place.connection.clone()),
        ..RecordsQuery::new(place.stream.clone(), PAGE)
    };
    let mut left = max_records;
    while left > 0 {
        query.limit = left.min(PAGE);
        let page = source.records(&CallContext::default(), &query).await?;
        left = left.saturating_sub(page.rows.len());
        records.extend(page.rows.into_iter().filter_map(|row| match row {
            Change::Present(record) => text_record(&record),
            Change::Deleted { .. } => None,
        }));
        match page.next {
            Some(next) => query.start = Start::After(next),
            None => return Ok(page.has_more),
        }
    }
    Ok(true)
}

/// Returns the texts of a record, or `None` if no handle names it.
fn text_record(record: &Record) -> Option<TextRecord> {
    let Record { address, data, emitted_at, .. } = record;
    let mut texts = Vec::new();
    data.values().for_each(|value| collect_texts(value, MAX_DEPTH, &mut texts));
    let when = authored_at(data).or(emitted_at.as_deref());
    Some(TextRecord {
        id: Handle::mint(address)?.to_string(),
        title: own_title(data).map(str::to_owned),
        texts,
        author: author(data),
        day: when.and_then(|time| time.get(..10)).map(str::to_owned),
    })
}

fn collect_texts(value: &Value, depth: usize, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) if depth > 0 => {
            items.iter().for_each(|item| collect_texts(item, depth - 1, texts));
        }
        Value::Object(fields) if depth > 0 => {
            fields.values().for_each(|field| collect_texts(field, depth - 1, texts));
        }
        _ => {}
    }
}

/// Returns the author of a record, without an address in angle brackets.
fn author(data: &RecordData) -> Option<String> {
    let text = AUTHOR_FIELDS.iter().filter_map(|name| field_named(data, name)).find_map(Value::as_str)?;
    let name = text.split('<').next().unwrap_or(text).trim();
    (!name.is_empty()).then(|| name.to_owned())
}
