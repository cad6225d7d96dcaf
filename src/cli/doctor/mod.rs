//! `fetchwell doctor`: what is configured, whether it works, and what to do when it does not.

mod checks;
mod collisions;

use clap::Args;
use futures_util::future::join_all;
use serde::Serialize;

use self::checks::{Examined, examine};
use self::collisions::collisions;
use super::circuits::reported;
use super::failure::Failure;
use super::open::runtime;
use super::print::{BAD, FAINT, GOOD, Printer, STRONG, UNSURE, safe};
use super::settings::SourceArgs;
use super::state::StateArgs;
use crate::config::{Environment, SourceSettings};

/// Check the configured sources, and say what to do when something is wrong.
#[derive(Debug, Args)]
pub(super) struct Doctor {
    #[command(flatten)]
    source: SourceArgs,

    #[command(flatten)]
    state: StateArgs,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    /// The source it is about; none when it is about all.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    name: &'static str,
    ok: bool,
    found: String,
    /// What works and could be better.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

impl Check {
    fn of(source: &SourceSettings, name: &'static str, outcome: Result<String, String>) -> Self {
        Self { source: Some(source.name.to_string()), ..Self::of_all(name, outcome) }
    }

    fn of_all(name: &'static str, outcome: Result<String, String>) -> Self {
        let ok = outcome.is_ok();
        Self { source: None, name, ok, found: outcome.unwrap_or_else(|problem| problem), warning: None }
    }

    fn warning(self, warning: Option<String>) -> Self {
        Self { warning, ..self }
    }
}

impl Doctor {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let checks = self.checks(environment)?;
        let wrong = checks.iter().filter(|check| !check.ok).count();
        if printer.json {
            printer.value(&checks);
        } else {
            print_text(printer, &checks);
        }
        match wrong {
            0 => Ok(()),
            1 => Err(Failure::new("1 check failed; do what it says and run doctor again")),
            more => Err(Failure::new(format!(
                "{more} checks failed; do what the first says and run doctor again"
            ))),
        }
    }

    /// Checks all sources at the same time: one that does not answer hides no other.
    fn checks(self, environment: &Environment) -> Result<Vec<Check>, Failure> {
        let settings = match self.source.settings(environment) {
            Ok(settings) => settings,
            Err(failure) => return Ok(vec![Check::of_all("settings", Err(failure.message))]),
        };
        let examined = settings.sources.iter().map(|source| examine(source, environment));
        let examined: Vec<Examined> = runtime()?.block_on(join_all(examined));
        let together = collisions(&settings.sources, &examined);
        let left_alone = self.state.directory(settings.state_dir).map(|state| reported(&state));
        let left_alone = left_alone.unwrap_or_default().into_iter().map(|circuit| {
            let found = "a running server leaves a source alone".to_owned();
            Check::of_all("circuit", Ok(found)).warning(Some(circuit))
        });
        Ok(examined.into_iter().flat_map(|source| source.checks).chain(together).chain(left_alone).collect())
    }
}

fn print_text(printer: Printer, checks: &[Check]) {
    let many =
        checks.iter().any(|check| check.source != checks.first().and_then(|first| first.source.clone()));
    let mut before = None;
    for check in checks {
        if many && before != Some(&check.source) {
            let heading = check.source.as_deref().unwrap_or("all sources");
            printer.line(format_args!("{STRONG}{}{STRONG:#}", safe(heading)));
            before = Some(&check.source);
        }
        let (style, mark) = match (check.ok, &check.warning) {
            (true, None) => (GOOD, "ok   "),
            (true, Some(_)) => (UNSURE, "note "),
            (false, _) => (BAD, "wrong"),
        };
        let found = match &check.warning {
            None => safe(&check.found),
            Some(warning) => safe(&format!("{}; {warning}", check.found)),
        };
        printer.line(format_args!("{style}{mark}{style:#} {:<12} {FAINT}{found}{FAINT:#}", check.name));
    }
}
