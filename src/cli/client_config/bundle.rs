//! `fetchwell bundle`: packs this program into a file that Claude Desktop installs with a double click (MCPB).
//!
//! The bundle is a zip file with a manifest and the running executable, so it is specific to the platform. Claude
//! Desktop asks the user for a store or a configuration file during the installation.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use fetchwell_tools::Profile;
use serde_json::{Map, Value, json};
use tempfile::NamedTempFile;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::absolute;
use crate::app::failure::Failure;
use crate::cli::print::Printer;

/// Create a bundle for Claude Desktop (.mcpb) with this program, for this platform.
#[derive(Debug, Args)]
pub(crate) struct Bundle {
    /// The file to write; an earlier bundle of that name is replaced.
    #[arg(long, value_name = "FILE", default_value = "fetchwell.mcpb")]
    out: PathBuf,

    /// Ask for a store at installation, and propose this one [default: ask for a store]
    #[arg(long, value_name = "DB", num_args = 0..=1, conflicts_with = "config")]
    store: Option<Option<PathBuf>>,

    /// Ask for a configuration file at installation, and propose this one.
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    config: Option<Option<PathBuf>>,
}

/// File that the installation asks the user for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InstallPrompt {
    Store,
    Configuration,
}

/// Maximum size in bytes of a manifest of fetchwell.
const MAX_MANIFEST_BYTES: u64 = 1024 * 1024;

/// Path of the executable in the bundle.
const EXECUTABLE: &str = if cfg!(windows) { "server/fetchwell.exe" } else { "server/fetchwell" };

impl Bundle {
    pub(crate) fn run(self, printer: Printer) -> Result<(), Failure> {
        let platform = platform().ok_or_else(|| {
            Failure::new("bundles are for Linux, macOS and Windows; make one on one of these")
        })?;
        let (prompt, proposed) = match self.config {
            Some(file) => (InstallPrompt::Configuration, file),
            None => (InstallPrompt::Store, self.store.flatten()),
        };
        let proposed = proposed.as_deref().map(absolute).transpose()?;
        if fs::symlink_metadata(&self.out).is_ok() && !is_bundle(&self.out) {
            return Err(Failure::new(format!(
                "{} exists and is not a bundle of fetchwell; move it, or name another file with --out",
                self.out.display()
            )));
        }
        let manifest = manifest(platform, prompt, proposed.as_deref());
        let bytes = write(&self.out, &manifest).map_err(|error| {
            Failure::new(format!(
                "{} cannot be written ({error}); name another with --out",
                self.out.display()
            ))
        })?;
        if printer.json {
            printer.value(&json!({ "bundle": absolute(&self.out)?, "bytes": bytes, "platform": platform }));
        } else {
            let out = self.out.display();
            printer.line(format_args!("{out} ({platform}, {:.1} MB)", bytes as f64 / 1e6));
            printer.line(
                "Install it in Claude Desktop: Settings > Extensions > Advanced settings > Install Extension",
            );
        }
        Ok(())
    }
}

/// Returns the name of this platform in manifests.
fn platform() -> Option<&'static str> {
    match std::env::consts::OS {
        "linux" => Some("linux"),
        "macos" => Some("darwin"),
        "windows" => Some("win32"),
        _ => None,
    }
}

/// Returns `manifest.json`, version 0.3.
fn manifest(platform: &str, prompt: InstallPrompt, proposed: Option<&str>) -> Value {
    let (key, flag, title, about) = match prompt {
        InstallPrompt::Store => {
            ("store", "--store", "Store", "The store to search, made by `fetchwell import`")
        }
        InstallPrompt::Configuration => {
            ("config", "--config", "Configuration", "A fetchwell.toml with the sources to search")
        }
    };
    let mut option = Map::new();
    option.insert("type".to_owned(), "file".into());
    option.insert("title".to_owned(), title.into());
    option.insert("description".to_owned(), about.into());
    option.insert("required".to_owned(), true.into());
    option.extend(proposed.map(|path| ("default".to_owned(), path.into())));
    let tools = Profile::Standard.tools().iter();
    let tools: Vec<Value> =
        tools.map(|tool| json!({ "name": tool.name, "description": tool.description })).collect();
    json!({
        "manifest_version": "0.3",
        "name": "fetchwell",
        "display_name": "fetchwell",
        "version": env!("CARGO_PKG_VERSION"),
        "description": env!("CARGO_PKG_DESCRIPTION"),
        "author": { "name": "fetchwell" },
        "license": env!("CARGO_PKG_LICENSE"),
        "keywords": ["search", "records", "mcp"],
        "server": {
            "type": "binary",
            "entry_point": EXECUTABLE,
            "mcp_config": {
                "command": format!("${{__dirname}}/{EXECUTABLE}"),
                "args": ["serve", "--stdio", flag, format!("${{user_config.{key}}}")],
                "env": {},
            },
        },
        "tools": tools,
        "compatibility": { "platforms": [platform] },
        "user_config": { key: option },
    })
}

/// Returns true if a file is a bundle of fetchwell, which a new one may replace.
fn is_bundle(path: &Path) -> bool {
    let read = || {
        fs::symlink_metadata(path).ok()?.is_file().then_some(())?;
        let mut bundle = ZipArchive::new(File::open(path).ok()?).ok()?;
        let manifest = bundle.by_name("manifest.json").ok()?.take(MAX_MANIFEST_BYTES);
        let manifest: Value = serde_json::from_reader(manifest).ok()?;
        Some(manifest.get("name")? == "fetchwell")
    };
    read().unwrap_or(false)
}

/// Writes the bundle with mode 0600 to a temporary file and renames it, so that it is never incomplete. Returns its
/// size in bytes.
fn write(out: &Path, manifest: &Value) -> io::Result<u64> {
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let unfinished = NamedTempFile::new_in(folder)?;
    let mut bundle = ZipWriter::new(unfinished.as_file());
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    bundle.start_file("manifest.json", options.unix_permissions(0o644))?;
    serde_json::to_writer_pretty(&mut bundle, manifest)?;
    bundle.start_file(EXECUTABLE, options.unix_permissions(0o755))?;
    io::copy(&mut File::open(std::env::current_exe()?)?, &mut bundle)?;
    bundle.finish()?;
    let written = unfinished.persist(out)?;
    Ok(written.metadata()?.len())
}
