//! The model for search by meaning, which is downloaded only if the user asks for it.

use std::path::Path;

use clap::ValueEnum;
use fetchwell_core::terminal::output::note;
use serde_json::{Value, json};

use super::super::embeddings::{ModelChoice, ModelConfig, build_vectors, configure};
use super::super::print::Printer;
use super::super::source::FileArgs;
use super::choose::Chooser;
use super::sources::SourceSetup;
use crate::app::failure::Failure;
use crate::config::Environment;

/// A default model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum DefaultModel {
    /// A model for English, 91 MB.
    English,
    /// A model for more than 50 languages, 490 MB.
    Multilingual,
}

/// Result of the step.
#[derive(Debug, Default)]
pub(super) struct ModelOutcome {
    /// Folder of the model, if one was installed.
    folder: Option<String>,
    /// True if the model could not be installed, or records could not be embedded.
    pub(super) has_failed: bool,
}

impl ModelOutcome {
    /// Returns the outcome for JSON output.
    pub(super) fn json(&self) -> Value {
        self.folder.as_ref().map_or(Value::Null, |folder| json!({ "folder": folder }))
    }
}

/// Installs the named model, or the one that the user chooses on a terminal, embeds the records of the store, and makes the
/// store a source of the configuration, so that clients search by meaning.
///
/// # Errors
///
/// The user stopped the command.
pub(super) fn install_model(
    named: Option<DefaultModel>,
    chooser: Chooser,
    sources: &mut SourceSetup,
    store: &Path,
    printer: Printer,
    environment: &Environment,
) -> Result<ModelOutcome, Failure> {
    let is_offered = store.exists() && sources.lacks_model();
    let model = match named {
        None if is_offered => chooser.model()?,
        named => named,
    };
    let Some(model) = model else {
        if is_offered && !chooser.is_dry() && !printer.json {
            note(&"searches are by words; `fetchwell embeddings install` adds search by meaning");
        }
        return Ok(ModelOutcome::default());
    };
    if chooser.is_dry() {
        note(&format_args!("would install the {} model for search by meaning", model.as_str()));
        return Ok(ModelOutcome::default());
    }
    match install(model, sources, store, environment) {
        Ok(outcome) => Ok(outcome),
        Err(failure) if failure.is_stop() => Err(failure),
        Err(failure) => {
            note(&format_args!("no model is installed: {failure}"));
            Ok(ModelOutcome { folder: None, has_failed: true })
        }
    }
}

fn install(
    model: DefaultModel,
    sources: &mut SourceSetup,
    store: &Path,
    environment: &Environment,
) -> Result<ModelOutcome, Failure> {
    let path = sources.config_path()?;
    let read = || ModelConfig::read(FileArgs { config: Some(path.clone()) }, false);
    let config = read()?;
    let installed = ModelChoice::default_model(model == DefaultModel::Multilingual).install()?;
    configure(config, &installed, environment)?;
    sources.add_for_model(store)?;
    let built = build_vectors(&read()?, environment)?;
    built.iter().for_each(note);
    let has_failed = built.iter().any(|store| store.has_failed());
    Ok(ModelOutcome { folder: Some(installed.folder.display().to_string()), has_failed })
}

impl DefaultModel {
    fn as_str(self) -> &'static str {
        match self {
            Self::English => "English",
            Self::Multilingual => "multilingual",
        }
    }
}

impl Chooser {
    /// Returns the model to install. Only a terminal is asked, and no answer means none.
    fn model(self) -> Result<Option<DefaultModel>, Failure> {
        if self != Self::Terminal {
            return Ok(None);
        }
        self.ask(
            "Find records by meaning, too? A model is downloaded from huggingface.co, and runs on this machine: `e` for English \
             (91 MB), `m` for more than 50 languages (490 MB), Enter or `n` for none",
            |answer| match answer {
                "" | "n" | "no" | "none" => Some(None),
                "e" | "english" => Some(Some(DefaultModel::English)),
                "m" | "multilingual" => Some(Some(DefaultModel::Multilingual)),
                _ => None,
            },
        )
    }
}
