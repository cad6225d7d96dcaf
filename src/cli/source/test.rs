//! `fetchwell source test`: probes the sources of the configuration file.

use anstyle::Style;
use clap::Args;
use fetchwell_core::terminal::Line;
use futures_util::future::join_all;
use serde::Serialize;

use super::file_args::{FileArgs, unknown};
use crate::app::failure::Failure;
use crate::app::open::{AS_IT_IS, allowed, open_source, runtime};
use crate::cli::print::{BAD, GOOD, Printer, STRONG, UNSURE};
use crate::cli::probe::{
    Extent, absent_streams, callers_credential, error_with_remedy, probe, sign_in_of_callers,
};
use crate::config::{Environment, SourceSettings};

/// Call each source, and print its contents or its problem
#[derive(Debug, Args)]
pub(super) struct Test {
    /// Only this source.
    name: Option<String>,

    #[command(flatten)]
    file: FileArgs,
}

#[derive(Serialize)]
struct TestResult<'a> {
    name: &'a str,
    label: Option<&'a str>,
    place: String,
    ok: bool,
    #[serde(flatten)]
    extent: Option<Extent>,
    /// Result of the test of a server that each caller signs in to.
    #[serde(skip_serializing_if = "Option::is_none")]
    sign_in: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

impl Test {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let mut settings = self.file.read_trusted()?;
        if let Some(name) = &self.name {
            if !settings.sources.iter().any(|source| source.name.as_str() == name) {
                return Err(unknown(name, &settings));
            }
            settings.sources.retain(|source| source.name.as_str() == name);
        }
        let tested = join_all(settings.sources.iter().map(|source| test(source, environment)));
        let tested: Vec<TestResult<'_>> = runtime()?.block_on(tested);
        if printer.json {
            printer.value(&tested);
        } else {
            tested.iter().for_each(|tested| print_text(printer, tested));
        }
        match tested.iter().filter(|tested| !tested.ok).count() {
            0 => Ok(()),
            1 => Err(Failure::new("1 source does not work; apply its remedy")),
            more => Err(Failure::new(format!("{more} sources do not work; apply their remedies"))),
        }
    }
}

async fn test<'a>(settings: &'a SourceSettings, environment: &Environment) -> TestResult<'a> {
    if let Some(credential) = callers_credential(settings) {
        let warning = Some(format!("its credential is {credential}"));
        let (sign_in, problem) = match sign_in_of_callers(settings, environment).await {
            None => (None, None),
            Some(Ok(found)) => (Some(found), None),
            Some(Err(problem)) => (None, Some(problem)),
        };
        return TestResult { ok: problem.is_none(), sign_in, problem, warning, ..tested(settings) };
    }
    let outcome = match open_source(settings, environment, AS_IT_IS, None) {
        Err(failure) => Err(failure.message),
        Ok(source) => probe(&*allowed(settings, source), settings)
            .await
            .map_err(|error| error_with_remedy(error, settings)),
    };
    let tested = TestResult { ok: outcome.is_ok(), ..tested(settings) };
    match outcome {
        Ok((schema, extent)) => {
            TestResult { extent: Some(extent), warning: absent_streams(settings, &schema), ..tested }
        }
        Err(problem) => TestResult { problem: Some(problem), ..tested },
    }
}

/// Creates the result of a source that has not been probed yet.
fn tested(settings: &SourceSettings) -> TestResult<'_> {
    TestResult {
        name: settings.name.as_str(),
        label: settings.label.as_deref(),
        place: settings.place.to_string(),
        ok: false,
        extent: None,
        sign_in: None,
        problem: None,
        warning: None,
    }
}

fn print_text(printer: Printer, tested: &TestResult<'_>) {
    let label = tested.label.map(|label| format!(" ({label})")).unwrap_or_default();
    let heading = format!("{}{label}", tested.name);
    printer.styled(Line::default().styled(STRONG, heading).text("  ").text(&tested.place));
    if let Some(extent) = &tested.extent {
        printer.styled(mark(GOOD, "ok").text("     ").text(extent));
    }
    if let Some(sign_in) = &tested.sign_in {
        printer.styled(mark(GOOD, "ok").text("     ").text(sign_in));
    }
    if let Some(problem) = &tested.problem {
        printer.styled(mark(BAD, "wrong").text("  ").text(problem));
    }
    if let Some(warning) = &tested.warning {
        printer.styled(mark(UNSURE, "note").text("   ").text(warning));
    }
}

fn mark(style: Style, word: &str) -> Line {
    Line::default().text("  ").styled(style, word)
}
