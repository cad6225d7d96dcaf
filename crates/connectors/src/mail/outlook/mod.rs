//! The reader of messages that Outlook saved (`.msg`, MS-OXMSG).
//!
//! A message is converted to MIME and then read as any other one, so that the choice of its body, its attachments, its
//! key and its headers follow the same rules.
//!
//! * `storage`: the properties of a storage of the compound file, `compressed_rtf`: bodies in compressed RTF
//! * `mime`: the message in MIME
//!
//! **Invariant:** the compound file is validated before anything is read, so its chains and storages have no cycles.

mod compressed_rtf;
mod mime;
mod storage;

use std::panic::catch_unwind;

use fetchwell_core::hex::hexadecimal;
use fetchwell_core::record::RecordData;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::super::attached::AttachmentReader;
use super::super::intake::{ATTACHMENT_PROBLEMS, AttachmentProblem};
use super::super::item::{FileRecord, Item};
use super::super::skips::Problem;
use super::eml::message_record;
use mime::{Mime, mime_of};
use storage::pad;

/// Reads a message. One without a message id has the hash of the file as its key.
pub(crate) fn read_msg(
    item: &mut Item<'_>,
    attachments: &dyn AttachmentReader,
) -> Result<FileRecord, Problem> {
    let mut bytes = item.read_all()?;
    let own_key = format!("sha256-{}", hexadecimal(&Sha256::digest(&bytes)));
    pad(&mut bytes);
    let Mime { bytes: mime, problems } =
        catch_unwind(|| mime_of(&bytes)).map_err(|_panic| Problem::internal())??;
    drop(bytes);
    let mut record = message_record(&mime, None, item, attachments)?;
    add_problems(&mut record.data, &problems);
    if record.key.starts_with("sha256-") {
        if record.data.get("thread_id").and_then(Value::as_str) == Some(&record.key) {
            record.data.insert("thread_id".to_owned(), Value::from(own_key.as_str()));
        }
        record.key = own_key;
    }
    Ok(record)
}

/// Adds the problems of parts that are missing in the MIME of a message to those of its attachments.
fn add_problems(data: &mut RecordData, problems: &[AttachmentProblem]) {
    let problems = problems.iter().map(AttachmentProblem::to_value);
    let mut all: Vec<Value> = problems.collect();
    if all.is_empty() {
        return;
    }
    if let Some(Value::Array(others)) = data.get_mut(ATTACHMENT_PROBLEMS).map(Value::take) {
        all.extend(others);
    }
    data.insert(ATTACHMENT_PROBLEMS.to_owned(), Value::from(all));
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::super::attached::NoAttachments;
    use super::*;

    fn read(bytes: &[u8]) -> Result<FileRecord, Problem> {
        read_msg(&mut Item::from_reader("a.msg".to_owned(), None, Box::new(bytes)).unwrap(), &NoAttachments)
    }

    #[test]
    fn a_message_is_read_and_a_cyclic_container_is_refused() {
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/samples/kinds/bittern.msg");
        let bytes = std::fs::read(sample).unwrap();
        let record = read(&bytes).unwrap();
        assert_eq!(record.data["subject"], "The bittern Ünder the reeds");
        assert_eq!(
            (&record.data["from"], &record.data["to"]),
            (&"Ann Berg <ann@x.test>".into(), &"Bob <bob@x.test>".into())
        );
        assert_eq!(record.data["body"].as_str().map(str::trim), Some("A bittern booms.\nSee the file."));
        assert_eq!(record.data["attachments"][0], "notes ü.txt");
        assert_eq!(record.emitted_at.as_deref(), Some("2024-03-01T10:00:00Z"));
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let (table, directory) = (number(76) as usize, number(48));
        for (at, value) in [
            ((table + 1) * 512 + 4 * directory as usize, directory),
            ((directory as usize + 1) * 512 + 76, 0),
        ] {
            let mut cyclic = bytes.clone();
            cyclic[at..at + 4].copy_from_slice(&value.to_le_bytes());
            assert!(read(&cyclic).unwrap_err().text.contains("its container is broken"), "{at}");
        }
    }
}
