//! The imports that read files of one kind or of all kinds, in a folder, an archive, or alone.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::target::TargetArgs;
use crate::connectors::{FileKind, FileSelection, ImportError, Intake, import_files, import_git};

#[derive(Debug, Subcommand)]
pub(super) enum FilesCommand {
    /// Import every file of a known kind in a folder or archive
    Files(PathArgs),
    /// Import text files, a record per file
    Text(PathArgs),
    /// Import web pages, a record per file
    Html(PathArgs),
    /// Import e-mails in `.eml` files, a record per file
    Eml(PathArgs),
    /// Import a Maildir, a record per message
    Maildir(PathArgs),
    /// Import PDF documents with their text layer, a record per file
    Pdf(PathArgs),
    /// Import Word documents, a record per file
    Docx(PathArgs),
    /// Import PowerPoint presentations, a record per file
    Pptx(PathArgs),
    /// Import OpenDocument texts, a record per file
    Odt(PathArgs),
    /// Import EPUB books, a record per file
    Epub(PathArgs),
    /// Import Excel workbooks, a record per row
    Xlsx(PathArgs),
    /// Import OpenDocument spreadsheets, a record per row
    Ods(PathArgs),
    /// Import iCalendar files, a record per event, task or journal entry
    Ics(PathArgs),
    /// Import vCard files, a record per contact
    Vcard(PathArgs),
    /// Import RSS and Atom feeds that were saved, a record per entry
    Feed(PathArgs),
    /// Import SQLite databases, a stream per table and a record per row
    Sqlite(PathArgs),
    /// Import a git repository, a record per commit that HEAD reaches
    Git(PathArgs),
    /// Import an export of ChatGPT, a record per conversation
    #[command(name = "chatgpt")]
    ChatGpt(PathArgs),
    /// Import an export of Claude, a record per conversation
    Claude(PathArgs),
    /// Import an export of Slack, a record per message
    Slack(PathArgs),
    /// Import issues or pull requests from `gh issue list --json`, a record per issue
    Github(PathArgs),
    /// Import every file of a known kind in a ZIP archive
    Zip(PathArgs),
    /// Import every file of a known kind in a tar archive, also compressed with gzip
    Tar(PathArgs),
    /// Import the mailboxes of a Google Takeout archive or folder, a record per message
    Takeout(PathArgs),
}

/// A file or folder, and the connection of its records.
#[derive(Debug, Args)]
pub(super) struct PathArgs {
    /// The file or folder.
    path: PathBuf,
    #[command(flatten)]
    into: TargetArgs,
}

impl FilesCommand {
    pub(super) fn place(&self) -> (&TargetArgs, &Path) {
        let PathArgs { path, into } = self.parts().0;
        (into, path)
    }

    /// Returns the key of the connector: the name of the subcommand.
    pub(super) fn connector(&self) -> &'static str {
        self.parts().1
    }

    pub(super) fn read_into(
        &self,
        intake: &mut Intake<'_>,
        progress: &dyn Fn(u64),
    ) -> Result<(), ImportError> {
        let (PathArgs { path, .. }, _, kinds) = self.parts();
        if let Self::Git(_) = self {
            return import_git(path, intake);
        }
        let program = std::env::current_exe().ok();
        let selection = FileSelection { kinds: kinds.to_vec(), stream: None, program };
        import_files(path, &selection, intake, progress)
    }

    /// Returns the arguments, the name and the kinds of files of a subcommand. No kind stands for all kinds.
    fn parts(&self) -> (&PathArgs, &'static str, &'static [FileKind]) {
        use FileKind as File;
        match self {
            Self::Files(path) => (path, "files", &[]),
            Self::Text(path) => (path, "text", &[File::Text]),
            Self::Html(path) => (path, "html", &[File::Html]),
            Self::Eml(path) => (path, "eml", &[File::Eml]),
            Self::Maildir(path) => (path, "maildir", &[File::Eml]),
            Self::Pdf(path) => (path, "pdf", &[File::Pdf]),
            Self::Docx(path) => (path, "docx", &[File::Docx]),
            Self::Pptx(path) => (path, "pptx", &[File::Pptx]),
            Self::Odt(path) => (path, "odt", &[File::Odt]),
            Self::Epub(path) => (path, "epub", &[File::Epub]),
            Self::Xlsx(path) => (path, "xlsx", &[File::Xlsx]),
            Self::Ods(path) => (path, "ods", &[File::Ods]),
            Self::Ics(path) => (path, "ics", &[File::Ics]),
            Self::Vcard(path) => (path, "vcard", &[File::Vcard]),
            Self::Feed(path) => (path, "feed", &[File::Feed]),
            Self::Sqlite(path) => (path, "sqlite", &[File::Sqlite]),
            Self::Git(path) => (path, "git", &[]),
            Self::ChatGpt(path) => (path, "chatgpt", &[File::ChatGpt, File::Zip]),
            Self::Claude(path) => (path, "claude", &[File::Claude, File::Zip]),
            Self::Slack(path) => (path, "slack", &[File::Slack, File::Zip]),
            Self::Github(path) => (path, "github", &[File::Github]),
            Self::Zip(path) => (path, "zip", &[File::Zip]),
            Self::Tar(path) => (path, "tar", &[File::Tar, File::Gzip]),
            Self::Takeout(path) => (path, "takeout", &[File::Mbox, File::Zip, File::Tar, File::Gzip]),
        }
    }
}
