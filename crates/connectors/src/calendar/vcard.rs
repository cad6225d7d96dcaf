//! The reader of contacts: a record for each vCard.

use super::super::intake::Intake;
use super::super::item::{FileRecord, Item, ReadError};
use super::content_line::{ContentLine, content_lines};
use super::zones::Zones;

/// Stream of contacts.
const STREAM: &str = "contacts";

/// Reads the contacts of a file.
pub(crate) fn read_vcard(item: &mut Item<'_>, intake: &mut Intake<'_>) -> Result<(), ReadError> {
    let text = item.read_text()?;
    let (mut card, mut number) = (None::<Card>, 0_usize);
    for line in content_lines(&text) {
        let is_card = || line.text().trim().eq_ignore_ascii_case("VCARD");
        match (line.name.as_str(), &mut card) {
            ("BEGIN", None) if is_card() => card = Some(Card::new(item)),
            ("END", Some(_)) if is_card() => {
                if let Some(ended) = card.take() {
                    number += 1;
                    let place = format!("{}: contact {number}", item.path);
                    ended.into_record(item, number).take_into(&place, intake)?;
                }
            }
            (_, Some(card)) => card.set(&line),
            _ => {}
        }
    }
    if card.is_some() {
        return Err("it ends within a contact".into());
    }
    if number == 0 {
        return Err("it has no contacts".into());
    }
    Ok(())
}

/// A contact that is being read.
struct Card {
    record: FileRecord,
    uid: String,
    /// Name from its parts, used if there is no formatted name.
    name: String,
    emails: Vec<String>,
    phones: Vec<String>,
    addresses: Vec<String>,
}

impl Card {
    fn new(item: &Item<'_>) -> Self {
        let (record, name) = (FileRecord::for_item(STREAM, item), String::new());
        let (emails, phones, addresses) = (Vec::new(), Vec::new(), Vec::new());
        Self { record, uid: String::new(), name, emails, phones, addresses }
    }

    fn set(&mut self, line: &ContentLine) {
        let record = &mut self.record;
        match line.name.as_str() {
            "FN" if !record.data.contains_key("name") => record.put_text("name", &line.text()),
            "N" => {
                let mut parts = line.pieces(';');
                // The family name is first.
                let parts_after_family = parts.len().min(1);
                parts.rotate_left(parts_after_family);
                self.name = parts.join(" ");
            }
            "NICKNAME" => append(record, "nickname", &line.text(), ", "),
            "ORG" => append(record, "organization", &line.pieces(';').join(", "), ", "),
            "TITLE" => append(record, "job_title", &line.text(), ", "),
            "ROLE" => append(record, "role", &line.text(), ", "),
            "EMAIL" => self.emails.push(line.text().trim().to_owned()),
            "TEL" => self.phones.push(line.text().trim().trim_start_matches("tel:").to_owned()),
            "ADR" => self.addresses.push(line.pieces(';').join(", ")),
            "URL" => record.put_text("url", &line.text()),
            "BDAY" => {
                record.put_text("birthday", &Zones::default().time(line).unwrap_or_else(|| line.text()));
            }
            "CATEGORIES" => record.put_list("categories", line.pieces(',')),
            "NOTE" => append(record, "body", &line.text(), "\n"),
            "REV" => record.put_text("modified_at", &Zones::default().time(line).unwrap_or_default()),
            "UID" => line.text().trim().clone_into(&mut self.uid),
            _ => {}
        }
    }

    /// Returns the record. Its key is the id of the contact, else its number in the file.
    fn into_record(self, item: &Item<'_>, number: usize) -> FileRecord {
        let Self { mut record, uid, name, emails, phones, addresses } = self;
        if !record.data.contains_key("name") {
            record.put_text("name", &name);
        }
        record.put_list("emails", emails);
        record.put_list("phones", phones);
        record.put_list("addresses", addresses);
        record.put_text("path", &item.path);
        record.key = if uid.is_empty() { format!("{}/{number}", item.path) } else { uid };
        let modified = record.data.get("modified_at").and_then(serde_json::Value::as_str).map(str::to_owned);
        record.emitted_at = modified.or(record.emitted_at);
        record.identity = Some(record.data.clone());
        record
    }
}

/// Adds a text to a field that a contact may have several times.
fn append(record: &mut FileRecord, field: &str, text: &str, separator: &str) {
    let known = record.data.get(field).and_then(serde_json::Value::as_str).map(str::to_owned);
    match known {
        Some(known) => record.put_text(field, &format!("{known}{separator}{text}")),
        None => record.put_text(field, text),
    }
}
