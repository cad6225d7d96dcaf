//! The configuration file that the commands read and change.

use std::path::{Path, PathBuf};

use clap::Args;
use fetchwell_core::terminal::output::note;

use crate::app::failure::Failure;
use crate::config::{
    ConfigError, FileSettings, FoundFile, TrustedFiles, check_text, default_file, file_to_edit, is_yaml,
    read_text, save,
};

/// The configuration file to change.
#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct FileArgs {
    /// The configuration file [default: fetchwell.toml in this folder, or else the one in your configuration folder]
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) config: Option<PathBuf>,
}

impl FileArgs {
    pub(in crate::cli) fn path(&self) -> PathBuf {
        self.config.clone().unwrap_or_else(file_to_edit)
    }

    /// Returns the path of the file if it can be edited without changing the rest.
    pub(in crate::cli) fn path_to_edit(&self) -> Result<PathBuf, Failure> {
        let path = self.path();
        if is_yaml(&path) {
            let problem =
                "only TOML files can be edited; edit YAML by hand, then run `fetchwell config check`"
                    .to_owned();
            return Err(ConfigError::invalid(path, problem).into());
        }
        Ok(path)
    }

    /// Writes the edited text. A trusted file stays trusted, since the user made the change. For an untrusted file
    /// that was only found, prints a note about the settings that need trust.
    pub(in crate::cli) fn save(&self, path: &Path, before: &str, after: &str) -> Result<(), Failure> {
        let trusted = TrustedFiles::of_user().ok();
        let was_trusted = trusted.filter(|files| files.is_trusted(path, before).unwrap_or(false));
        save(path, after)?;
        if let Some(files) = was_trusted {
            files.trust(path, after).map_err(ConfigError::from)?;
        }
        let found =
            default_file().filter(|found| self.config.is_none() && matches!(found, FoundFile::Here(_)));
        if let Some(Err(untrusted)) = found.map(|found| found.check_trust(after)) {
            note(&untrusted);
        }
        Ok(())
    }

    /// Reads and parses the file, which may have no sources.
    pub(in crate::cli) fn read(&self) -> Result<(PathBuf, String, FileSettings), Failure> {
        let path = self.path();
        if self.config.is_none() && !path.exists() {
            return Err(Failure::new(format!(
                "there is no configuration at {} yet; add a source with `fetchwell source add`",
                path.display()
            )));
        }
        let text = read_text(&path)?;
        let settings = check_text(&text, &path)?;
        Ok((path, text, settings))
    }

    /// Reads and parses the file for a command that uses its sources. A file that was only found has to be trusted for some.
    pub(in crate::cli) fn read_trusted(&self) -> Result<FileSettings, Failure> {
        let (_, text, settings) = self.read()?;
        if let (None, Some(found)) = (&self.config, default_file()) {
            found.check_trust(&text)?;
        }
        Ok(settings)
    }
}

/// Returns the failure for an unknown source, with the known ones.
pub(super) fn unknown(name: &str, settings: &FileSettings) -> Failure {
    let names: Vec<String> = settings.sources.iter().map(|source| format!("`{}`", source.name)).collect();
    let known = match names.as_slice() {
        [] => "there are none; add one with `fetchwell source add`".to_owned(),
        names => format!("there are {}", names.join(", ")),
    };
    Failure::new(format!("there is no source `{name}`; {known}"))
}
