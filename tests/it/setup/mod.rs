//! `fetchwell setup`: records and clients of a home folder.
//!
//! * `end_to_end`: from nothing to a client that answers
//! * `choices`: flags, questions on a terminal, and runs without one
//! * `folders`: documents, notes, desktop and downloads
//! * `page`: the same in a browser
//! * `model`: a model for search by meaning
//! * `servers`: MCP servers in files of clients, which become sources
//! * `client_files`: files that are missing, read-only, links, invalid, or have comments

mod choices;
#[cfg(unix)]
mod client_files;
mod end_to_end;
#[cfg(target_os = "linux")]
mod folders;
mod model;
mod page;
mod servers;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::support::binary;

const MAIL: &str = "From ann@x.test Wed Apr  1 10:00:00 2026\nMessage-ID: <m1@x.test>\nFrom: Ann <ann@x.test>\n\
    To: ben@x.test\nDate: Wed, 1 Apr 2026 10:00:00 +0000\nSubject: Overdue invoice\n\nPlease pay the walrus invoice.\n";

const CONVERSATIONS: &str = r#"[{"uuid":"c1","name":"Cheese","created_at":"2026-02-01T10:00:00Z",
    "updated_at":"2026-02-01T10:00:00Z","chat_messages":[{"uuid":"m1","text":"Which gouda is old?","sender":"human",
    "created_at":"2026-02-01T10:00:00Z"}]}]"#;

/// A home folder.
struct Home(tempfile::TempDir);

impl Home {
    /// Creates an empty home folder.
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Creates a home folder with mail, notes, an export and the folders of two clients.
    fn with_records() -> Self {
        let home = Self::new();
        home.write(".thunderbird/x.default/ImapMail/imap.x.test/INBOX", MAIL);
        home.write(
            ".thunderbird/x.default/ImapMail/imap.x.test/INBOX.msf",
            "// <!-- <mdb:mork:z v=\"1.4\"/> -->",
        );
        home.write(".thunderbird/x.default/prefs.js", "user_pref(\"secret\", 1);");
        home.write("Vault/.obsidian/app.json", "{}");
        home.write("Vault/Trip.md", "# Trip\n\nThe ferry to Texel leaves at noon.\n");
        home.write("Documents/recipes/soup.md", "# Soup\n\nLeek and potato.\n");
        home.write("Documents/recipes/bread.md", "# Bread\n\nRye flour.\n");
        home.write("code/tool/README.md", "# Tool\n");
        home.write("code/tool/CHANGES.md", "# Changes\n");
        home.write("code/tool/Cargo.toml", "[package]\n");
        home.write_zip(
            "Downloads/data-2026-02-01.zip",
            &[("conversations.json", CONVERSATIONS), ("users.json", "[]")],
        );
        fs::create_dir_all(home.path(".cursor")).unwrap();
        fs::create_dir_all(home.path(".codex")).unwrap();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        // Without links, as the program names files.
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn store(&self) -> PathBuf {
        self.path("data/fetchwell/store.db")
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn write_zip(&self, name: &str, files: &[(&str, &str)]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut archive = ZipWriter::new(fs::File::create(path).unwrap());
        for (name, text) in files {
            archive.start_file(*name, SimpleFileOptions::default()).unwrap();
            archive.write_all(text.as_bytes()).unwrap();
        }
        archive.finish().unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Returns a command in this home folder, without a terminal.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = binary();
        command.args(arguments).current_dir(self.0.path()).env("HOME", self.0.path());
        command.env("XDG_DATA_HOME", self.path("data")).env("XDG_CONFIG_HOME", self.path(".config"));
        command.env("XDG_STATE_HOME", self.path("state")).stdin(Stdio::null());
        command
    }

    fn setup(&self, arguments: &[&str]) -> Output {
        self.command(&[&["setup"], arguments].concat()).output().unwrap()
    }

    /// Returns every file and its content, except those of the store and the state of servers.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.path("")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                } else if !["data", ".local"].iter().any(|own| entry.path().starts_with(self.path(own))) {
                    files.insert(entry.path(), fs::read(entry.path()).unwrap_or_default());
                }
            }
        }
        files
    }
}

/// Returns the copy beside a file.
fn backup_of(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}.fetchwell-backup", path.display()))
}
