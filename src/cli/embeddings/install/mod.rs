//! `fetchwell embeddings install`: a model in the user's folder of models, in the configuration, and the vectors of it.
//!
//! * `model`: the model that is meant, and its download
//! * `progress`: the progress of a download
//! * `configured`: the table of the configuration file
//! * `vectors`: the vectors of the stores of a configuration

mod configured;
mod model;
mod progress;
mod vectors;

use clap::Args;
use fetchwell_embedding::{InstalledModel, ModelOrigin};
use serde_json::{Value, json};

pub(in crate::cli) use configured::ModelConfig;
pub(in crate::cli) use model::ModelChoice;
pub(in crate::cli) use vectors::build_vectors;

use crate::app::embedding::{embedding_settings, open_embedding_model};
use crate::app::failure::Failure;
use crate::cli::print::{Printer, grouped};
use crate::cli::source::FileArgs;
use crate::config::Environment;

/// Download a model that runs on this machine, write it into the configuration, and embed the records with it.
///
/// The files come from huggingface.co or the hub that `HF_ENDPOINT` names, with the token in `HF_TOKEN`, and are verified. An
/// interrupted download continues. Nothing of your records leaves this machine.
#[derive(Debug, Args)]
pub(super) struct Install {
    #[command(flatten)]
    model: ModelChoice,

    /// Replace an embedding service in the configuration.
    #[arg(long)]
    replace: bool,

    /// Build no vectors; `fetchwell embeddings build` or a server does it later.
    #[arg(long)]
    no_build: bool,

    #[command(flatten)]
    file: FileArgs,
}

impl Install {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        // A file that cannot get the model is refused before the download.
        let config = ModelConfig::read(self.file, self.replace)?;
        let installed = self.model.install()?;
        let done = configure(config, &installed, environment)?;
        if !printer.json {
            print_model(printer, &installed, &done);
        }
        let built = if self.no_build { Vec::new() } else { build_vectors(&done, environment)? };
        if printer.json {
            printer.value(&json!({
                "folder": installed.folder,
                "bytes": installed.bytes,
                "origin": installed.origin.as_str(),
                "config": done.path(),
                "stores": built.iter().map(vectors::BuiltStore::json).collect::<Vec<Value>>(),
            }));
        } else {
            built.iter().for_each(|store| printer.line(store));
        }
        let has_failed = built.iter().any(vectors::BuiltStore::has_failed);
        if has_failed { Err(Failure::without_message()) } else { Ok(()) }
    }
}

/// Opens an installed model, and writes it into the configuration if it works.
pub(in crate::cli) fn configure(
    config: ModelConfig,
    installed: &InstalledModel,
    environment: &Environment,
) -> Result<ModelConfig, Failure> {
    let config = config.with_model(&installed.folder)?;
    open_embedding_model(embedding_settings(config.settings())?, environment)?;
    config.save()?;
    Ok(config)
}

fn print_model(printer: Printer, installed: &InstalledModel, config: &ModelConfig) {
    let InstalledModel { folder, bytes, origin } = installed;
    let (folder, bytes) = (folder.display(), grouped(*bytes));
    let text = match origin {
        ModelOrigin::Present => "is installed",
        ModelOrigin::Hub => "was downloaded and verified",
        ModelOrigin::Cache => "was copied from the cache of the hub",
        ModelOrigin::Folder => "was copied",
    };
    printer.line(format_args!("The model {text}: {folder}, {bytes} bytes."));
    let verb = if config.is_changed() { "now has" } else { "has" };
    printer.line(format_args!("{} {verb} it as [embedding].", config.path().display()));
}
