//! The files of a raw export of Joplin: a title, a text, and a block of metadata at the end.

/// Maximum number of lines of the metadata.
const MAX_LINES: usize = 100;

/// An item of Joplin.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct JoplinItem<'a> {
    /// First line of the file.
    pub(super) title: &'a str,
    /// Text between the title and the metadata.
    pub(super) body: &'a str,
    /// Fields of the record with their values.
    pub(super) fields: Vec<(&'static str, &'a str)>,
}

/// Metadata that become fields of a record.
const FIELDS: [(&str, &str); 6] = [
    ("user_created_time", "created"),
    ("created_time", "created"),
    ("user_updated_time", "modified"),
    ("updated_time", "modified"),
    ("source_url", "url"),
    ("author", "author"),
];

/// Reads an item, or returns `None` for a note of another program.
pub(super) fn read_joplin(note: &str) -> Option<JoplinItem<'_>> {
    let note = note.trim_end();
    // Each item ends with its type.
    let (_, last) = note.rsplit_once('\n')?;
    last.strip_prefix("type_:")?.trim().parse::<u8>().ok()?;
    let (mut metadata, mut end) = (Vec::new(), note.len());
    for line in note.rsplit('\n').take(MAX_LINES) {
        let Some(pair) = line.split_once(':').filter(|(name, _)| is_name(name)) else { break };
        end = end.saturating_sub(line.len() + 1);
        metadata.push(pair);
    }
    let has_id = |(name, value): &(&str, &str)| *name == "id" && value.trim().len() == 32;
    if !metadata.iter().any(has_id) {
        return None;
    }
    let text = note.get(..end)?.trim_end();
    let (title, body) = text.split_once('\n').unwrap_or((text, ""));
    let value_of =
        |wanted: &str| metadata.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.trim());
    let mut fields: Vec<(&str, &str)> = Vec::new();
    for (name, field) in FIELDS {
        let value = value_of(name).filter(|value| !value.is_empty());
        let is_new = fields.iter().all(|(known, _)| *known != field);
        fields.extend(value.filter(|_| is_new).map(|value| (field, value)));
    }
    Some(JoplinItem { title: title.trim(), body: body.trim_start_matches(['\r', '\n']), fields })
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_have_a_title_a_text_and_metadata() {
        let id = "0123456789abcdef0123456789abcdef";
        let metadata = format!(
            "id: {id}\nparent_id: \ncreated_time: 2024-03-09T10:00:00.000Z\nupdated_time: 2024-03-10T10:00:00.000Z\n\
             source_url: https://x.test\nauthor: \nuser_created_time: 2024-03-08T10:00:00.000Z\ntype_: 1"
        );
        let note = format!("The heron\n\nkey: value\n\n{metadata}\n");
        let expect = JoplinItem {
            title: "The heron",
            body: "key: value",
            fields: vec![
                ("created", "2024-03-08T10:00:00.000Z"),
                ("modified", "2024-03-10T10:00:00.000Z"),
                ("url", "https://x.test"),
            ],
        };
        assert_eq!(read_joplin(&note), Some(expect));
        // A folder has a title only.
        let folder = format!("Birds\n\nid: {id}\ntype_: 2");
        assert_eq!(read_joplin(&folder).map(|item| (item.title, item.body)), Some(("Birds", "")));
        for other in
            ["", "type_: 1", "a\nid: 5\ntype_: 1", "a\ntype_: 1", "a\ntype_: x", &format!("a\nid: {id}")]
        {
            assert_eq!(read_joplin(other), None, "{other}");
        }
    }
}
