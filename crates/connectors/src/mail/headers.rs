//! Values of single headers of a message.

use mail_parser::{Addr, Address, HeaderForm, Message};
use serde_json::Value;

/// Returns the labels that mail providers add to exports.
pub(super) fn labels(message: &Message<'_>) -> Option<Value> {
    // The parser decodes only the headers of the standards on its own.
    let labels = message.header_as("X-Gmail-Labels", HeaderForm::Text).pop()?;
    let text = labels.as_text()?;
    Some(text.split(',').map(str::trim).filter(|label| !label.is_empty()).map(Value::from).collect())
}

/// Returns addresses as a value.
pub(super) fn addresses(address: &Address<'_>) -> Value {
    Value::from(address_line(address))
}

/// Formats addresses as in a header: `Ann <ann@x.test>, b@x.test`.
pub(super) fn address_line(address: &Address<'_>) -> String {
    let write = |addr: &Addr<'_>| match (addr.name(), addr.address()) {
        (Some(name), Some(address)) => format!("{name} <{address}>"),
        (name, address) => name.or(address).unwrap_or_default().to_owned(),
    };
    address.iter().map(write).collect::<Vec<_>>().join(", ")
}

/// Returns the date of a message in RFC 3339, if it is valid.
pub(super) fn date_of(message: &Message<'_>) -> Option<String> {
    message.date().filter(|date| date.is_valid()).map(mail_parser::DateTime::to_rfc3339)
}
