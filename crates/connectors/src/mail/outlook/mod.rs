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
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::super::attached::AttachmentReader;
use super::super::item::{FileRecord, Item};
use super::eml::message_record;
use mime::mime_of;

/// Reads a message. One without a message id has the hash of the file as its key.
pub(crate) fn read_msg(
    item: &mut Item<'_>,
    attachments: &dyn AttachmentReader,
) -> Result<FileRecord, String> {
    let bytes = item.read_all()?;
    let mime = catch_unwind(|| mime_of(&bytes))
        .unwrap_or_else(|_panic| Err("an internal error stopped its parser; please report it".to_owned()))?;
    let own_key = format!("sha256-{}", hexadecimal(&Sha256::digest(&bytes)));
    drop(bytes);
    let mut record = message_record(&mime, None, item, attachments)?;
    if record.key.starts_with("sha256-") {
        if record.data.get("thread_id").and_then(Value::as_str) == Some(&record.key) {
            record.data.insert("thread_id".to_owned(), Value::from(own_key.as_str()));
        }
        record.key = own_key;
    }
    Ok(record)
}
