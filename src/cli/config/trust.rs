//! `fetchwell config trust`: trusts configuration files that were found and not named by the user.

use std::path::{Path, PathBuf};

use clap::Args;
use fetchwell_core::terminal::Line;
use fetchwell_core::terminal::output::note;
use serde_json::{Value, json};

use crate::app::failure::Failure;
use crate::app::settings::found_file;
use crate::cli::print::{FAINT, Printer};
use crate::config::{
    ConfigError, FoundFile, RestrictedKey, SourceSettings, TrustedFile, TrustedFiles, check_text, read_text,
    refuse_blank, restricted_keys,
};

/// Trust the current content of a configuration file that was only found, and show what that allows it to do
///
/// Without trust, such a file may only set names, stores, record servers over https and limits. Trust covers its path
/// and its content: after a change, review the file and trust it again.
#[derive(Debug, Args)]
pub(super) struct Trust {
    /// The file [default: fetchwell.toml in this folder]
    file: Option<PathBuf>,

    /// Only show what trust would allow it to do.
    #[arg(long)]
    dry_run: bool,

    /// List the trusted files.
    #[arg(long, conflicts_with_all = ["file", "dry_run", "remove"])]
    list: bool,

    /// Remove the trust in the file.
    #[arg(long, conflicts_with = "dry_run")]
    remove: bool,
}

impl Trust {
    pub(super) fn run(self, printer: Printer) -> Result<(), Failure> {
        if self.list {
            return list(printer);
        }
        let path = match self.file {
            Some(path) => path,
            None => match found_file()? {
                FoundFile::Here(path) => path,
                FoundFile::OfUser(path) => {
                    note(&format_args!("{} is your own, and trusted already", path.display()));
                    return Ok(());
                }
            },
        };
        if self.remove {
            return remove(printer, &path);
        }
        let text = read_text(&path)?;
        refuse_blank(&text, &path)?;
        let settings = check_text(&text, &path)?;
        let keys = restricted_keys(&text, &path)
            .map_err(|mistake| ConfigError::Invalid { path: path.clone(), mistake })?;
        let trusted = if keys.is_empty() || self.dry_run {
            None
        } else {
            // The trust applies to the text that was shown, even if the file has changed since.
            Some(TrustedFiles::of_user().and_then(|files| files.trust(&path, &text)).map_err(failure)?)
        };
        if printer.json {
            printer.value(&json!({
                "config": path,
                "trusted": trusted,
                "keys": keys.iter().map(key_value).collect::<Vec<_>>(),
                "servers": settings.sources.iter().filter_map(server).collect::<Vec<_>>(),
            }));
            return Ok(());
        }
        print_text(printer, &path, trusted.as_ref(), &keys, &settings.sources);
        Ok(())
    }
}

fn failure(error: impl Into<ConfigError>) -> Failure {
    error.into().into()
}

fn key_value(key: &RestrictedKey) -> Value {
    json!({ "line": key.line, "key": key.key, "value": key.value, "effect": key.effect })
}

/// Returns the URL of a source's server, if it has one.
fn server(source: &SourceSettings) -> Option<String> {
    source.place.file().is_none().then(|| source.place.to_string())
}

fn print_text(
    printer: Printer,
    path: &Path,
    trusted: Option<&TrustedFile>,
    keys: &[RestrictedKey],
    sources: &[SourceSettings],
) {
    let shown = path.display();
    match (trusted, keys) {
        (_, []) => printer.line(format_args!("{shown} has nothing that needs trust")),
        (Some(_), _) => printer.line(format_args!("{shown} is trusted as it is now. That allows it:")),
        (None, _) => printer.line(format_args!("{shown} is not trusted yet. Trust would allow it:")),
    }
    for key in keys {
        let effect = key.effect.map(|effect| format!("  {effect}")).unwrap_or_default();
        let set = format!("  line {}: {} = {}", key.line, key.key, key.value);
        printer.styled(Line::default().text(set).styled(FAINT, effect));
    }
    for url in sources.iter().filter_map(server) {
        printer.line(format_args!("  calls the record server {url}"));
    }
    if let Some(trusted) = trusted {
        let path = &trusted.path;
        printer.line(format_args!("`fetchwell config trust --remove {path}` removes the trust."));
    }
}

fn list(printer: Printer) -> Result<(), Failure> {
    let files = TrustedFiles::of_user().and_then(|files| files.list()).map_err(failure)?;
    let state = |file: &TrustedFile| match read_text(Path::new(&file.path)) {
        Ok(text) if file.has_content(&text) => "trusted",
        Ok(_) => "changed since",
        Err(_) => "cannot be read",
    };
    if printer.json {
        let shown = |file: &TrustedFile| {
            let TrustedFile { path, sha256, trusted_at } = file;
            json!({ "path": path, "sha256": sha256, "trusted_at": trusted_at, "state": state(file) })
        };
        let files: Vec<Value> = files.iter().map(shown).collect();
        printer.value(&files);
        return Ok(());
    }
    if files.is_empty() {
        note(&"no found file is trusted; `fetchwell config trust` trusts one");
        return Ok(());
    }
    let mut rows = vec![["file", "state", "trusted at"].map(str::to_owned).to_vec()];
    rows.extend(
        files.iter().map(|file| vec![file.path.clone(), state(file).to_owned(), file.trusted_at.clone()]),
    );
    printer.table(&rows);
    Ok(())
}

fn remove(printer: Printer, path: &Path) -> Result<(), Failure> {
    let is_removed = TrustedFiles::of_user().and_then(|files| files.remove(path)).map_err(failure)?;
    let shown = path.display();
    if !is_removed {
        return Err(Failure::new(format!(
            "{shown} is not among the trusted files; `fetchwell config trust --list` lists them"
        )));
    }
    if printer.json {
        printer.value(&json!({ "removed": path }));
    } else {
        printer.line(format_args!("{shown} is no longer trusted."));
    }
    Ok(())
}
