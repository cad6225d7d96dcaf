//! `fetchwell demo`: searches and fetches bundled sample data as a client would.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use directories::ProjectDirs;
use fetchwell_connectors::{ImportError, import_records};
use fetchwell_core::fit::Protection;
use fetchwell_core::record::RecordData;
use fetchwell_core::saturate::saturated;
use fetchwell_core::terminal::Line;
use fetchwell_lab::hostaway;
use fetchwell_lab::sample::{SampleAccount, import_account};
use fetchwell_sqlite::{SqliteStore, SqliteTarget};
use fetchwell_tools::{DEFAULT_CALL_DEADLINE, Payload, Toolbox};
use serde_json::{Value, json};

use super::client_config::{Client, Launch, absolute, program, shell_word, snippet};
use super::print::{FAINT, Printer, STRONG, grouped};
use crate::app::default_store::refuse_database;
use crate::app::failure::Failure;
use crate::app::open::{call, runtime, toolbox};

/// Try fetchwell on bundled sample data: two accounts that have records of the same ids.
#[derive(Debug, Args)]
pub(super) struct Demo {
    /// The sample.
    #[arg(value_enum, default_value_t = Sample::Mail)]
    sample: Sample,
    /// The file of the sample store [default: the user's data folder]
    #[arg(long, value_name = "DB")]
    store: Option<PathBuf>,
}

/// Sample data of the demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sample {
    /// A few messages and files.
    Mail,
    /// Holiday lets: 500 listings, 5,000 reservations and related records, with the paths of their API.
    Hostaway,
}

const MANIFEST: &str = include_str!("../../fixtures/demo/manifest.json");

/// Accounts of the mail sample: id, label and records.
const MAIL_ACCOUNTS: [(&str, &str, &str); 2] = [
    ("cin_work", "Work", include_str!("../../fixtures/demo/work.ndjson")),
    ("cin_home", "Home", include_str!("../../fixtures/demo/home.ndjson")),
];

impl Sample {
    /// Returns the name of the store's file in the user's data folder.
    fn file(self) -> &'static str {
        match self {
            Self::Mail => "demo.db",
            Self::Hostaway => "hostaway.db",
        }
    }

    fn accounts(self) -> [(&'static str, &'static str); 2] {
        match self {
            Self::Mail => MAIL_ACCOUNTS.map(|(id, label, _)| (id, label)),
            Self::Hostaway => hostaway::SAMPLE_ACCOUNTS,
        }
    }

    /// Imports the sample and returns the number of records. A repeated import changes nothing.
    fn import(self, store: &Path) -> Result<u64, ImportError> {
        match self {
            Self::Mail => import_mail(store),
            Self::Hostaway => hostaway::import_sample(&SqliteTarget::new(store)),
        }
    }

    /// Returns the search text of the demo.
    fn query(self) -> &'static str {
        match self {
            Self::Mail => "invoice",
            Self::Hostaway => "boat builder terrace",
        }
    }

    /// Returns a sentence that explains why handles are needed.
    fn collision(self) -> &'static str {
        match self {
            Self::Mail => "Both accounts have a message `m1`; the handle names the account.",
            Self::Hostaway => "Both accounts have a reservation `BK00001`; the handle names the account.",
        }
    }
}

impl Demo {
    pub(super) fn run(self, printer: Printer) -> Result<(), Failure> {
        let Self { sample, store } = self;
        let store = store.unwrap_or_else(|| default_store(sample));
        refuse_database(&store)?;
        let records = sample.import(&store)?;
        let name = "demo".parse().map_err(|error| Failure::usage(&error))?;
        let toolbox = toolbox(
            std::sync::Arc::new(SqliteStore::open(name, &store)?),
            DEFAULT_CALL_DEADLINE,
            &Protection::default(),
        )?;
        let shown = runtime()?.block_on(ask(&toolbox, sample.query()))?;
        let next = Next::new(sample, &store)?;
        if printer.json {
            let mut value = json!({
                "store": store,
                "records": records,
                "search": shown.found.into_parts().1,
                "fetch": shown.fetched.into_parts().1,
            });
            let (name, next) = match next {
                Next::Client { text, .. } => ("client_config", text.into()),
                Next::Commands(commands) => ("commands", commands.into()),
            };
            value.as_object_mut().map(|fields| fields.insert(name.to_owned(), next));
            printer.value(&value);
            return Ok(());
        }
        let accounts = sample.accounts().map(|(id, label)| format!("{id} ({label})")).join(" and ");
        let held = format!(": {} records of {accounts} in {}", grouped(records), store.display());
        printer.styled(Line::default().styled(STRONG, "Sample data").text(held));
        print_call(printer, &format!("search({})", json!({ "query": sample.query() })), &shown.found);
        print_call(printer, &format!("fetch({})", json!({ "id": shown.id })), &shown.fetched);
        printer.line("");
        printer.line(sample.collision());
        printer.line("");
        match next {
            Next::Client { goes, text } => {
                let heading = Line::default().styled(STRONG, "To search this sample data");
                printer.styled(heading.text(format_args!(" in {goes}:")));
                printer.lines(text);
                printer.line("");
                let heading = Line::default().styled(STRONG, "To search your own data");
                printer.styled(heading.text(", run `fetchwell setup`."));
            }
            Next::Commands(commands) => {
                let each = ", each in a terminal of its own:";
                printer.styled(Line::default().styled(STRONG, "To go on").text(each));
                commands.iter().for_each(|command| printer.line(command));
            }
        }
        Ok(())
    }
}

/// Suggested next steps.
enum Next {
    /// Add the configuration to a client.
    Client { goes: String, text: String },
    /// Run commands: a server, and requests to it.
    Commands(Vec<String>),
}

impl Next {
    fn new(sample: Sample, store: &Path) -> Result<Self, Failure> {
        let store = absolute(store)?;
        if sample == Sample::Hostaway {
            return Ok(Self::Commands(vec![
                format!("fetchwell serve --store {}", shell_word(&store)),
                "curl 'http://127.0.0.1:7400/api/v1/listings?limit=50'".to_owned(),
                "curl 'http://127.0.0.1:7400/api/v1/bookings/BK12345'".to_owned(),
            ]));
        }
        let arguments = vec!["serve".to_owned(), "--store".to_owned(), store];
        let launch = Launch { program: program()?, arguments, variables: Vec::new() };
        let claude = snippet(Client::Claude, &launch);
        Ok(Self::Client { goes: claude.goes, text: claude.text })
    }
}

struct DemoOutput {
    found: Payload,
    id: String,
    fetched: Payload,
}

/// Searches, and fetches the first result by the id in the answer.
async fn ask(toolbox: &Toolbox, query: &str) -> Result<DemoOutput, Failure> {
    let found = call(toolbox, "search", RecordData::from_iter([("query".to_owned(), query.into())])).await?;
    let answer: Value = serde_json::from_str(found.json()).unwrap_or_default();
    let id = answer.pointer("/results/0/id").and_then(Value::as_str);
    let id = id
        .ok_or_else(|| Failure::new("the sample data has no match; delete the sample store and try again"))?;
    let fetched = call(toolbox, "fetch", RecordData::from_iter([("id".to_owned(), id.into())])).await?;
    Ok(DemoOutput { id: id.to_owned(), found, fetched })
}

fn print_call(printer: Printer, call: &str, payload: &Payload) {
    printer.line("");
    printer.styled(Line::default().styled(STRONG, call));
    printer.json_text(payload.json());
    let bytes = grouped(saturated::<u64>(payload.json().len()));
    let size = format!("{bytes} bytes, the same as text and as structuredContent");
    printer.styled(Line::default().styled(FAINT, size));
}

pub(crate) fn import_mail(store: &Path) -> Result<u64, ImportError> {
    let mut records = 0;
    for (id, label, lines) in MAIL_ACCOUNTS {
        let account = SampleAccount { id, label, manifest: MANIFEST };
        records += import_account(&SqliteTarget::new(store), account, |intake| {
            import_records(&mut lines.as_bytes(), store, intake)
        })?;
    }
    Ok(records)
}

fn default_store(sample: Sample) -> PathBuf {
    let folder = ProjectDirs::from("", "", "fetchwell").map(|dirs| dirs.data_dir().to_owned());
    folder.unwrap_or_else(|| std::env::temp_dir().join("fetchwell")).join(sample.file())
}
