//! The readers of files that are one record each.

use super::super::attached::AttachmentReader;
use super::super::documents::{
    read_code, read_html, read_note, read_notebook, read_rtf, read_subtitles, read_text,
};
use super::super::exports::read_keep;
use super::super::item::{FileKind, FileRecord, Item};
use super::super::mail::{read_emlx, read_mail, read_msg};
use super::super::office::{read_docx, read_epub, read_odt, read_pptx};
use super::super::pdf::read_pdf;
use super::super::recognition::read_picture;
use super::super::skips::Problem;
use super::selection::FileSelection;

/// Reads a file that is one record. Returns `None` for kinds that can have any number of them.
pub(super) fn read_record(
    kind: FileKind,
    item: &mut Item<'_>,
    selection: &FileSelection,
    attachments: &dyn AttachmentReader,
) -> Option<Result<FileRecord, Problem>> {
    Some(match kind {
        FileKind::Text => read_text(item),
        FileKind::Markdown => read_note(item),
        FileKind::Html => read_html(item),
        FileKind::Eml => read_mail(item, attachments),
        FileKind::Docx => read_docx(item),
        FileKind::Pptx => read_pptx(item),
        FileKind::Odt => read_odt(item),
        FileKind::Epub => read_epub(item),
        FileKind::Pdf => read_pdf(item, selection.program.as_deref(), selection.ocr.as_deref()),
        FileKind::Image => read_picture(item, selection.ocr.as_deref()),
        FileKind::Rtf => read_rtf(item),
        FileKind::Notebook => read_notebook(item),
        FileKind::Subtitles => read_subtitles(item),
        FileKind::Code => read_code(item),
        FileKind::Emlx => read_emlx(item, attachments),
        FileKind::Msg => read_msg(item, attachments),
        FileKind::Keep => read_keep(item),
        _ => return None,
    })
}
