//! The model that a command means, and its download.

use std::path::{Path, PathBuf};

use clap::Args;
use directories::ProjectDirs;
use fetchwell_core::terminal::output::note;
use fetchwell_embedding::{
    ENGLISH, HubSettings, InstalledModel, MULTILINGUAL, Repository, Revision, install_from_folder,
    install_from_hub,
};

use super::progress::DownloadProgress;
use crate::app::failure::Failure;
use crate::app::open::runtime;
use crate::app::stop;
use crate::config::hub_settings;

/// The model, and the place that it comes from.
#[derive(Debug, Clone, Default, Args)]
pub(in crate::cli) struct ModelChoice {
    /// The model: ORGANIZATION/NAME of a repository with an ONNX file, or the short name of a known one [default:
    /// all-MiniLM-L6-v2, for English, 91 MB]
    name: Option<String>,

    /// Install the default model for more than 50 languages, paraphrase-multilingual-MiniLM-L12-v2, 490 MB.
    #[arg(long, conflicts_with = "name")]
    multilingual: bool,

    /// Take a branch, tag or commit of the repository [default: main]
    #[arg(long, value_name = "REVISION", conflicts_with = "from")]
    revision: Option<String>,

    /// Take a folder or an ONNX file that was downloaded by hand, or the URL of the page of a repository.
    #[arg(long, value_name = "PLACE", conflicts_with = "multilingual")]
    from: Option<PathBuf>,
}

impl ModelChoice {
    /// Returns the default model for English or for many languages.
    pub(in crate::cli) fn default_model(multilingual: bool) -> Self {
        Self { multilingual, ..Self::default() }
    }

    /// Installs the model into the user's folder of models, and prints the progress.
    ///
    /// # Errors
    ///
    /// The model cannot be downloaded or copied, or the user stops the command. A download continues the next time.
    pub(in crate::cli) fn install(&self) -> Result<InstalledModel, Failure> {
        let models = models_folder()?;
        let settings = hub_settings();
        let Some(from) = &self.from else {
            let default = if self.multilingual { MULTILINGUAL } else { ENGLISH };
            let repository = self.name.as_deref().unwrap_or(default).parse()?;
            let revision = self.revision.as_deref().map(str::parse).transpose()?.unwrap_or_default();
            return download(&models, &repository, &revision, &settings);
        };
        match from.to_str().filter(|text| text.starts_with("https://") || text.starts_with("http://")) {
            Some(_) if self.name.is_some() => {
                Err(Failure::usage(&"the URL of a page names the model already; leave NAME out"))
            }
            Some(page) => {
                let (settings, repository, revision) = settings.for_page(page)?;
                download(&models, &repository, &revision, &settings)
            }
            None => copy(&models, from, self.name.as_deref()),
        }
    }
}

/// Returns the folder of all models of the user.
fn models_folder() -> Result<PathBuf, Failure> {
    let dirs = ProjectDirs::from("", "", "fetchwell");
    let dirs = dirs.ok_or_else(|| Failure::new("your data folder is unknown; set HOME"))?;
    Ok(dirs.data_local_dir().join("models"))
}

/// Downloads a model until the end, or until the user stops it.
fn download(
    models: &Path,
    repository: &Repository,
    revision: &Revision,
    settings: &HubSettings,
) -> Result<InstalledModel, Failure> {
    let progress = DownloadProgress::new(repository.to_string());
    let report = |done| progress.report(done);
    let result = runtime()?.block_on(async {
        let stopped = stop::requested();
        tokio::select! {
            done = install_from_hub(models, repository, revision, settings, &report) => Ok(done?),
            signal = stopped => {
                let failure = Failure::stopped("stopped; the same command continues the download");
                Err(failure.ended_by(signal))
            }
        }
    });
    progress.end();
    result
}

/// Copies a model from a folder. A name of a repository gives the copy that name.
fn copy(models: &Path, from: &Path, name: Option<&str>) -> Result<InstalledModel, Failure> {
    let name = name.map(|name| match name.parse::<Repository>() {
        Ok(repository) => repository.folder_name(),
        Err(_plain) => name.to_owned(),
    });
    note(&format_args!("copying the model in {}", from.display()));
    Ok(install_from_folder(models, from, name.as_deref(), &|_progress| {})?)
}
