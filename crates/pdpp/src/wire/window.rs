//! Parser of windows of a text field.

use fetchwell_core::handle::RecordAddress;
use fetchwell_core::record::{RecordData, Window};
use fetchwell_source::SourceError;
use serde_json::Value;

use super::tolerant::{text, whole};
use super::{parse, wrong_shape};

/// Parses a window, under `window` or bare. `offset` is the requested start, used if the response has none.
pub(crate) fn window(body: &[u8], asked: &RecordAddress, offset: usize) -> Result<Window, SourceError> {
    let body: RecordData = parse(body)?;
    let inside = |body: &RecordData| body.get("window").and_then(Value::as_object).cloned();
    let outer = match body.get("data").and_then(Value::as_object) {
        Some(inner) if inside(&body).is_none() => inner.clone(),
        _ => body,
    };
    let window = inside(&outer).unwrap_or_else(|| outer.clone());
    let piece = window.get("text").and_then(Value::as_str).ok_or(wrong_shape("`window` with a `text`"))?;
    let number = |names: &[&str]| whole(&window, names).and_then(|number| usize::try_from(number).ok());
    let start_chars = number(&["start_chars", "startChars"]).unwrap_or(offset);
    let end_chars = start_chars.saturating_add(piece.chars().count());
    let total_chars = number(&["total_chars", "totalChars"]).unwrap_or(end_chars).max(end_chars);
    let found_chars = number(&["match_start_chars", "matchStartChars"])
        .zip(number(&["match_end_chars", "matchEndChars"]))
        .map(|(start, end)| start..end)
        .filter(|found| !found.is_empty());
    let connection = text(&outer, &["connection_id", "connectionId"]).and_then(|id| id.parse().ok());
    let connection = asked.connection.clone().or(connection);
    Ok(Window {
        address: RecordAddress { connection, ..asked.clone() },
        text: piece.to_owned(),
        start_chars,
        total_chars,
        found_chars,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: &Value) -> Result<Window, SourceError> {
        let address =
            RecordAddress { connection: None, stream: "s".parse().unwrap(), record: "r".parse().unwrap() };
        window(body.to_string().as_bytes(), &address, 5)
    }

    fn recorded(name: &str) -> Window {
        let file = format!("{}/../../fixtures/record-server/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let reply: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        read(&reply["response"]).unwrap()
    }

    #[test]
    fn recorded_windows_are_read() {
        for (name, start, end, found) in [
            ("fw-default", 0, 4_096, None),
            ("fw-offset", 100, 150, None),
            ("fw-q", 0, 39, Some(10..19)),
            ("fw-beyond", 20_400, 20_400, None),
        ] {
            let window = recorded(name);
            assert_eq!(
                (window.start_chars, window.end_chars(), window.total_chars),
                (start, end, 20_400),
                "{name}"
            );
            assert_eq!(window.found_chars, found, "{name}");
        }
    }

    #[test]
    fn the_end_is_counted_and_not_believed() {
        let window = read(
            &json!({"window": {"text": "a😀b", "start_chars": 2, "end_chars": 6, "next_offset_chars": 6,
            "total_chars": 40}}),
        )
        .unwrap();
        assert_eq!((window.end_chars(), window.total_chars), (5, 40));
    }

    #[test]
    fn every_shape_of_a_window_is_read() {
        for body in [
            json!({"window": {"text": "abc", "startChars": 5, "totalChars": 8}, "connectionId": "c"}),
            json!({"data": {"window": {"text": "abc", "start_chars": 5, "total_chars": 8}, "connection_id": "c"}}),
            json!({"text": "abc", "connection_id": "c", "total_chars": "many"}),
            json!({"window": {"text": "abc", "start_chars": -1, "total_chars": 2}, "connection_id": "c"}),
        ] {
            let window = read(&body).unwrap();
            assert_eq!(
                (window.text.as_str(), window.start_chars, window.total_chars),
                ("abc", 5, 8),
                "{body}"
            );
            assert_eq!(window.address.connection.unwrap().as_str(), "c");
        }
        for body in [json!({}), json!({"window": {"text": 7}}), json!({"window": []})] {
            assert!(matches!(read(&body), Err(SourceError::Protocol(_))), "{body}");
        }
    }
}
