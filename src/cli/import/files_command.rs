//! The imports that read files of one kind or of all kinds, in a folder, an archive, or alone.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{Args, Subcommand};
use fetchwell_connectors::{FileSelection, ImportError, Intake, file_kinds, import_files, import_git};

use super::super::sync::OcrArgs;
use super::target::TargetArgs;
use crate::app::failure::Failure;

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
    /// Import pictures with the text that is recognized in them, a record per file; needs `--ocr`
    Image(PathArgs),
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
    /// Import RTF documents, a record per file
    Rtf(PathArgs),
    /// Import Jupyter notebooks, a record per file
    Notebook(PathArgs),
    /// Import subtitles, a record per file
    Subtitles(PathArgs),
    /// Import source code and plain configuration, a record per file
    Code(PathArgs),
    /// Import messages of Apple Mail, a record per file
    Emlx(PathArgs),
    /// Import messages that Outlook saved, a record per file
    Msg(PathArgs),
    /// Import notes that Evernote exported, a record per note
    Enex(PathArgs),
    /// Import a chat that WhatsApp exported, a record per message
    #[command(name = "whatsapp")]
    WhatsApp(PathArgs),
    /// Import chats that Telegram exported, a record per message
    Telegram(PathArgs),
    /// Import notes that Google Keep exported, a record per note
    Keep(PathArgs),
    /// Import the highlights and notes of a Kindle, a record for each
    Kindle(PathArgs),
    /// Import bookmarks of a browser, a record for each
    Bookmarks(PathArgs),
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
    #[command(flatten)]
    ocr: OcrArgs,
}

impl FilesCommand {
    pub(super) fn place(&self) -> (&TargetArgs, &Path) {
        let PathArgs { path, into, .. } = self.parts().0;
        (into, path)
    }

    /// Returns the key of the connector: the name of the subcommand.
    pub(super) fn connector(&self) -> &'static str {
        self.parts().1
    }

    /// Checks that text recognition applies to the kind and is possible, if the command asks for it.
    pub(super) fn check_ocr(&self) -> Result<(), Failure> {
        let (PathArgs { ocr, .. }, name) = self.parts();
        if let Ok(kind) = name.parse() {
            ocr.check_kind(kind)?;
        }
        ocr.check_program()
    }

    pub(super) fn read_into(
        &self,
        intake: &mut Intake<'_>,
        stop: &Arc<AtomicBool>,
    ) -> Result<(), ImportError> {
        let (PathArgs { path, ocr, .. }, name) = self.parts();
        if let Self::Git(_) = self {
            return import_git(path, intake);
        }
        let mut selection = FileSelection::new(file_kinds(name).unwrap_or_default(), None);
        (selection.program, selection.ocr) = (std::env::current_exe().ok(), ocr.recognizer(stop));
        import_files(path, &selection, intake)
    }

    /// Returns the arguments and the name of a subcommand.
    fn parts(&self) -> (&PathArgs, &'static str) {
        match self {
            Self::Files(path) => (path, "files"),
            Self::Text(path) => (path, "text"),
            Self::Html(path) => (path, "html"),
            Self::Eml(path) => (path, "eml"),
            Self::Maildir(path) => (path, "maildir"),
            Self::Pdf(path) => (path, "pdf"),
            Self::Image(path) => (path, "image"),
            Self::Docx(path) => (path, "docx"),
            Self::Pptx(path) => (path, "pptx"),
            Self::Odt(path) => (path, "odt"),
            Self::Epub(path) => (path, "epub"),
            Self::Xlsx(path) => (path, "xlsx"),
            Self::Ods(path) => (path, "ods"),
            Self::Ics(path) => (path, "ics"),
            Self::Vcard(path) => (path, "vcard"),
            Self::Feed(path) => (path, "feed"),
            Self::Sqlite(path) => (path, "sqlite"),
            Self::Git(path) => (path, "git"),
            Self::ChatGpt(path) => (path, "chatgpt"),
            Self::Claude(path) => (path, "claude"),
            Self::Slack(path) => (path, "slack"),
            Self::Github(path) => (path, "github"),
            Self::Rtf(path) => (path, "rtf"),
            Self::Notebook(path) => (path, "notebook"),
            Self::Subtitles(path) => (path, "subtitles"),
            Self::Code(path) => (path, "code"),
            Self::Emlx(path) => (path, "emlx"),
            Self::Msg(path) => (path, "msg"),
            Self::Enex(path) => (path, "enex"),
            Self::WhatsApp(path) => (path, "whatsapp"),
            Self::Telegram(path) => (path, "telegram"),
            Self::Keep(path) => (path, "keep"),
            Self::Kindle(path) => (path, "kindle"),
            Self::Bookmarks(path) => (path, "bookmarks"),
            Self::Zip(path) => (path, "zip"),
            Self::Tar(path) => (path, "tar"),
            Self::Takeout(path) => (path, "takeout"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subcommand_is_a_kind_of_import() {
        #[derive(Debug, clap::Parser)]
        struct Import {
            #[command(subcommand)]
            command: FilesCommand,
        }
        let command = <Import as clap::CommandFactory>::command();
        for subcommand in command.get_subcommands() {
            let name = subcommand.get_name();
            assert!(name == "git" || file_kinds(name).is_some(), "{name}");
            let line = ["import", name, "path", "--connection", "notes"];
            let parsed = <Import as clap::Parser>::try_parse_from(line).unwrap();
            assert_eq!(parsed.command.connector(), name);
        }
    }
}
