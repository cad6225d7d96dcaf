//! `fetchwell config check`: validates a configuration file in the way `serve` does.

use std::path::{Path, PathBuf};

use clap::Args;
use fetchwell_core::saturate::saturated;
use fetchwell_core::terminal::output::note;
use fetchwell_http::TlsSettings;
use serde_json::json;

use crate::app::embedding::known_dimension_problems;
use crate::app::failure::Failure;
use crate::app::settings::found_file;
use crate::cli::print::{Printer, grouped};
use crate::config::{
    ConfigError, Environment, FileSettings, SourceSettings, read_text, refuse_blank, settings_of,
};

/// Check a whole file, with the environment variables that override it; no source is called.
#[derive(Debug, Args)]
pub(super) struct Check {
    /// The file [default: fetchwell.toml in this folder, or else the one in your configuration folder]
    file: Option<PathBuf>,

    /// The same as FILE, as in other commands.
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    config: Option<PathBuf>,
}

impl Check {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let named = self.file.or(self.config);
        let found = match named {
            Some(_) => None,
            None => Some(found_file()?),
        };
        let path = named.or_else(|| found.as_ref().map(|found| found.path().to_owned())).unwrap_or_default();
        let settings = read_text(&path).and_then(|text| {
            refuse_blank(&text, &path)?;
            let settings = settings_of(&text, &path, environment)?;
            found.as_ref().map_or(Ok(()), |found| found.check_trust(&text))?;
            Ok(settings)
        });
        match settings {
            Ok(settings) => {
                print_valid(printer, &path, &settings);
                Ok(())
            }
            Err(error) => {
                if printer.json {
                    printer.value(&refusal(&path, &error));
                }
                Err(error.into())
            }
        }
    }
}

fn print_valid(printer: Printer, path: &Path, settings: &FileSettings) {
    let protection = &settings.protection;
    let (threshold, hard_cap) = (protection.global.threshold, protection.global.hard_cap);
    let of_key = settings.tls.as_ref().and_then(TlsSettings::exposed_key_warning);
    let of_models = short_deadlines(settings).into_iter().chain(known_dimension_problems(settings));
    let warnings: Vec<String> = settings.warnings.iter().cloned().chain(of_key).chain(of_models).collect();
    if printer.json {
        printer.value(&json!({
            "ok": true,
            "warnings": warnings,
            "config": path,
            "sources": settings.sources.len(),
            "output_token_threshold": threshold,
            "hard_output_token_cap": hard_cap,
            "default_page_size": protection.global.page_size,
            "max_page_size": protection.global.max_page_size,
            "endpoints": protection.endpoints.len(),
            "telemetry_ring": settings.telemetry.ring,
            "rate_limit": settings.rate_limit.map(|limit| json!({
                "requests": limit.requests, "per_seconds": limit.per.as_secs_f64(),
            })),
        }));
        return;
    }
    let sources = match settings.sources.len() {
        0 => "no sources (the default store is used, or one that --store or --provider-url names)".to_owned(),
        1 => "1 source".to_owned(),
        many => format!("{many} sources"),
    };
    let grouped = |tokens: usize| grouped(saturated::<u64>(tokens));
    let endpoints = match protection.endpoints.len() {
        0 => String::new(),
        1 => ", 1 endpoint of its own".to_owned(),
        many => format!(", {many} endpoints of their own"),
    };
    let rate = settings
        .rate_limit
        .map(|limit| format!(", {} requests per {:?}", limit.requests, limit.per))
        .unwrap_or_default();
    printer.line(format_args!(
        "{} is valid: {sources}, answers of {} tokens and {} at most{endpoints}{rate}",
        path.display(),
        grouped(threshold),
        grouped(hard_cap)
    ));
    for warning in warnings {
        note(&format_args!("warning: {warning}"));
    }
}

/// Returns a warning for each store with a deadline that is too short for the time a search may wait for a vector.
fn short_deadlines(settings: &FileSettings) -> Vec<String> {
    let Some(embedding) = &settings.embedding else { return Vec::new() };
    let stores = settings.sources.iter().filter(|source| source.place.file().is_some());
    let short = stores.filter(|source| source.max_query_timeout() < embedding.query_timeout);
    let warning = |source: &SourceSettings| {
        format!(
            "embedding.query_timeout is {:?}, and searches of `{}` wait at most {:?}, since its deadline is {:?}; raise its deadline or lower query_timeout",
            embedding.query_timeout,
            source.name,
            source.max_query_timeout(),
            source.deadline
        )
    };
    short.map(warning).collect()
}

fn refusal(path: &Path, error: &ConfigError) -> serde_json::Value {
    let (line, key, problem) = match error {
        ConfigError::Invalid { mistake, .. } => (mistake.line, mistake.key.clone(), mistake.problem.clone()),
        ConfigError::Variable { name, problem } => (None, Some((*name).to_owned()), problem.clone()),
        ConfigError::Untrusted { first, .. } => {
            (Some(first.line), Some(first.key.clone()), error.to_string())
        }
        ConfigError::Unreadable { .. }
        | ConfigError::Empty(_)
        | ConfigError::Trust(_)
        | ConfigError::Unwritable { .. } => (None, None, error.to_string()),
    };
    json!({ "ok": false, "config": path, "line": line, "key": key, "problem": problem })
}
