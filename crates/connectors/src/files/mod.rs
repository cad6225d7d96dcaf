//! The importer of files: a folder, a single file, or an archive, with a reader for each kind.
//!
//! Every file becomes records of a stream for its kind: documents, messages, events and so on. A file that cannot be
//! read is rejected with the reason, files of other kinds are counted, and the rest of the folder is imported.
//!
//! * `detect`: the kind of a file, `json_kinds`: the kind of a JSON file
//! * `attachments`: the reader of attachments of messages, `attachment_text`: their records as one text
//! * `folder`: the files of a folder, `ignored`: what it leaves out
//! * `project_documents`: the files of a project of documents
//! * `parse`: the files that become one record each, parsed on several threads
//! * `read`: the readers of all kinds, and archives, `record`: those of files that are one record each
//! * `selection`: the kinds to import

mod attachment_text;
mod attachments;
mod detect;
mod folder;
mod ignored;
mod json_kinds;
mod parse;
mod project_documents;
mod read;
mod record;
mod selection;

use std::io::BufRead;
use std::path::Path;

pub(crate) use self::attachments::Attachments;
pub(crate) use self::detect::detect_kind;
pub(crate) use self::folder::{FolderEntry, walk};
pub use self::folder::{is_hidden, special_file};
pub use self::ignored::is_generated;
pub(crate) use self::parse::{ListEntry, ParseInput, parse_all};
pub use self::project_documents::{CategoryFrom, InvalidCategoryFrom};
pub(crate) use self::project_documents::{DocumentIds, DocumentReader};
pub(crate) use self::read::{FileReader, detect_selected, other_kind};
pub use self::selection::FileSelection;
use super::ImportError;
use super::intake::Intake;
use super::item::Item;
use super::mail::{MESSAGES, import_mailbox};
use super::skips::Problem;

/// Imports every message of a mailbox file into the stream of `selection`, which also says how attached files are read. `path` names
/// the file in errors.
///
/// # Errors
///
/// The file is not a mailbox or cannot be read, the store cannot be written, or the user stopped the
/// import.
pub fn import_mbox(
    reader: &mut impl BufRead,
    path: &Path,
    selection: &FileSelection,
    intake: &mut Intake<'_>,
) -> Result<(), ImportError> {
    let attachments = Attachments::new(selection, intake.stop_flag());
    let stream = selection.stream.as_deref().unwrap_or(MESSAGES);
    import_mailbox(reader, path, stream, &attachments, intake)
}

/// Imports the content of a file by its name, as if it were in an archive.
///
/// # Errors
///
/// The content is of no known kind, the store cannot be written, or the user stopped the import.
pub fn import_content(name: &str, content: &[u8], intake: &mut Intake<'_>) -> Result<(), ImportError> {
    let selection = FileSelection::default();
    let attachments = Attachments::new(&selection, intake.stop_flag());
    let mut reader = FileReader::new(&selection, intake, &attachments);
    match Item::from_reader(name.to_owned(), None, Box::new(content)) {
        Ok(item) => reader.read_file(item, false)?,
        Err(error) => reader.reject(name, &error.to_string().into()),
    }
    reader.finish(Path::new(name))
}

/// Imports a file, or every selected file below a folder.
///
/// # Errors
///
/// The folder cannot be read or has no such file, the store cannot be written, or the user stopped the import.
pub fn import_files(
    path: &Path,
    selection: &FileSelection,
    intake: &mut Intake<'_>,
) -> Result<(), ImportError> {
    let progress = intake.progress();
    let attachments = Attachments::new(selection, intake.stop_flag());
    let mut reader = FileReader::new(selection, intake, &attachments);
    let list = |visit: &mut dyn FnMut(FolderEntry) -> Result<(), ImportError>| walk(path, visit);
    let input = ParseInput {
        root: path,
        selection,
        attachments: &attachments,
        parses: true,
        list: &list,
        max_files: usize::MAX,
        read_state: &|_file| (),
    };
    parse_all(&input, &mut |parsed, _state| {
        reader.check_stop()?;
        match parsed {
            ListEntry::Record { record, bytes } => {
                progress.read(bytes);
                reader.take_parsed(*record)?;
            }
            ListEntry::Unopened { path, error, bytes } => {
                progress.read(bytes);
                reader.reject(&path, &Problem::unreadable(&error));
            }
            ListEntry::Rejected { path, problem, bytes } => {
                progress.read(bytes);
                reader.reject(&path, &problem);
            }
            ListEntry::Other(FolderEntry::File { file, path: name }) => {
                progress.read(file.metadata().map_or(0, |metadata| metadata.len()));
                match Item::open(name.clone(), &file) {
                    Ok(item) => reader.read_file(item, file == path)?,
                    Err(error) => reader.reject(&name, &Problem::unreadable(&error)),
                }
            }
            ListEntry::Other(FolderEntry::Skipped { path, reason }) => reader.skip(&path, reason),
            ListEntry::Other(FolderEntry::Unreadable { place, problem }) => reader.reject(&place, &problem),
        }
        Ok(())
    })?;
    reader.finish(path)
}
