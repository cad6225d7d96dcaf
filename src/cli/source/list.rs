//! `fetchwell source list`: lists the sources of the configuration file.

use clap::Args;
use fetchwell_core::terminal::output::note;
use serde::Serialize;

use super::file_args::FileArgs;
use crate::app::failure::Failure;
use crate::cli::print::Printer;
use crate::config::{CredentialSettings, SourceSettings};

/// List the sources of the configuration file, without calling them
#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    file: FileArgs,
}

#[derive(Serialize)]
struct SourceOutput<'a> {
    name: &'a str,
    label: Option<&'a str>,
    place: String,
    /// Description of the credential; `None` for a store.
    credential: Option<String>,
    deadline_ms: u128,
    /// Allowed streams; `None` allows all.
    streams: Option<Vec<&'a str>>,
}

impl List {
    pub(super) fn run(self, printer: Printer) -> Result<(), Failure> {
        let (path, _, settings) = self.file.read()?;
        let shown: Vec<SourceOutput<'_>> = settings.sources.iter().map(shown).collect();
        if printer.json {
            printer.value(&shown);
            return Ok(());
        }
        if shown.is_empty() {
            note(&format_args!("{} has no sources yet; add one with `fetchwell source add`", path.display()));
            return Ok(());
        }
        let heading = ["name", "place", "label", "credential", "deadline", "streams"];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        rows.extend(shown.iter().zip(&settings.sources).map(|(shown, source)| {
            [
                shown.name,
                &shown.place,
                shown.label.unwrap_or_default(),
                shown.credential.as_deref().unwrap_or_default(),
                &format!("{:?}", source.deadline),
                &shown.streams.as_ref().map_or_else(|| "all".to_owned(), |streams| streams.join(", ")),
            ]
            .map(str::to_owned)
            .to_vec()
        }));
        printer.table(&rows);
        Ok(())
    }
}

fn shown(settings: &SourceSettings) -> SourceOutput<'_> {
    SourceOutput {
        name: settings.name.as_str(),
        label: settings.label.as_deref(),
        place: settings.place.to_string(),
        credential: settings.place.credential().map(CredentialSettings::shown),
        deadline_ms: settings.deadline.as_millis(),
        streams: settings
            .streams
            .as_ref()
            .map(|streams| streams.iter().map(fetchwell_core::handle::StreamName::as_str).collect()),
    }
}
