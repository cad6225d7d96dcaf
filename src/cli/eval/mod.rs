//! `fetchwell eval`: measures search quality on labelled questions.
//!
//! * `make`: questions made from a source
//! * `run`: the searches of one run
//! * `report`: measures by kind, and differences of two runs

mod make;
mod report;
mod run;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use fetchwell_core::saturate::saturated;
use fetchwell_core::terminal::output::note;
use fetchwell_lab::evaluation::{Question, parse_questions};
use fetchwell_source::{BoundSource, SearchMode};

use self::make::Make;
use self::report::{Comparison, RunReport};
use self::run::run;
use super::mode::ModeName;
use super::print::Printer;
use crate::app::failure::Failure;
use crate::app::open::{WITH_WHOLE_INDEX, joined, open_sources, runtime};
use crate::app::rerank::reranking;
use crate::app::settings::{PlaceArgs, SourceArgs};
use crate::config::{Environment, FileSettings};

/// Maximum number of unknown ids that are named.
const MAX_UNKNOWN_IDS: usize = 10;

/// Maximum size of a file of questions in bytes.
const MAX_FILE_BYTES: usize = 64 * 1024 * 1024;

/// Measure how well search answers labelled questions.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct Eval {
    #[command(subcommand)]
    command: Option<Command>,

    /// The questions, one JSON object per line: `query`, `relevant` (ids as `fetchwell search` prints them), and
    /// optionally `id`, `kind`, `connection` and `streams`.
    #[arg(value_name = "QUESTIONS", required = true)]
    file: Option<PathBuf>,

    #[command(flatten)]
    source: SourceArgs,

    /// Mode of the searches; twice to compare two modes [default: auto]
    #[arg(long, value_enum, value_name = "MODE")]
    mode: Vec<ModeName>,

    /// A second store to compare with.
    #[arg(long, value_name = "DB")]
    against: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Make(Make),
}

impl Eval {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        if let Some(Command::Make(make)) = self.command {
            return make.run(printer, environment);
        }
        let modes: Vec<SearchMode> = match self.mode.as_slice() {
            [] => vec![SearchMode::Auto],
            names => names.iter().map(|name| SearchMode::from(*name)).collect(),
        };
        if modes.len() > 2 || (modes.len() == 2 && self.against.is_some()) {
            return Err(Failure::usage(&"two runs are compared: name two modes, or one mode with --against"));
        }
        let questions = read_questions(&self.file.unwrap_or_default())?;
        let settings = self.source.settings(environment)?;
        let mut sources = vec![open(&settings, environment)?];
        if let Some(store) = &self.against {
            let place = PlaceArgs { store: Some(store.clone()), provider_url: None };
            let other = SourceArgs { place, config: None, found_config: None, ..self.source.clone() };
            // The stores differ, and the models do not.
            let FileSettings { embedding, rerank, .. } = settings;
            let mut other = other.settings(environment)?;
            (other.embedding, other.rerank) = (embedding, rerank);
            sources.push(open(&other, environment)?);
        }
        let runtime = runtime()?;
        let mut runs = Vec::new();
        for source in &sources {
            for mode in &modes {
                let done = runtime.block_on(run(source, &questions, *mode))?;
                if done.lexical_instead {
                    note(&format_args!("mode {} is not available: searched by words", mode.as_str()));
                }
                done.notes.iter().for_each(note);
                for id in done.unknown.iter().take(MAX_UNKNOWN_IDS) {
                    note(&format_args!("no record has the id {id}"));
                }
                if let more @ 1.. = done.unknown.len().saturating_sub(MAX_UNKNOWN_IDS) {
                    note(&format_args!("no record has {more} more of the ids"));
                }
                runs.push(RunReport::new(&questions, *mode, done));
            }
        }
        let comparison = match runs.as_slice() {
            [one, other] => Some(Comparison::new(one, other)),
            _ => None,
        };
        report::print(printer, &runs, comparison.as_ref());
        Ok(())
    }
}

/// Opens the sources of a configuration, with its reranker.
fn open(settings: &FileSettings, environment: &Environment) -> Result<BoundSource, Failure> {
    let source = joined(open_sources(settings, environment, WITH_WHOLE_INDEX)?, settings.call_deadline)?;
    Ok(source.reranked_by(reranking(settings, environment)).into())
}

fn read_questions(path: &Path) -> Result<Vec<Question>, Failure> {
    let failure = |problem: &str| Failure::with_code(&format!("{}: {problem}", path.display()), 1);
    let file =
        File::open(path).map_err(|error| failure(&format!("it cannot be read ({error}); check the path")))?;
    let mut bytes = Vec::new();
    let limit = saturated::<u64>(MAX_FILE_BYTES).saturating_add(1);
    file.take(limit).read_to_end(&mut bytes).map_err(|error| failure(&error.to_string()))?;
    if bytes.len() > MAX_FILE_BYTES {
        return Err(failure("larger than 64 MiB; split it"));
    }
    let text = String::from_utf8(bytes).map_err(|_not_utf8| failure("not UTF-8 text"))?;
    parse_questions(&text).map_err(|problems| failure(&problems.to_string()))
}
