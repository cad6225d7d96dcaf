//! Parser of lists of records and changes.

use fetchwell_core::handle::{ConnectionId, StreamName};
use fetchwell_core::memory::MemoryPermit;
use fetchwell_core::record::RecordData;
use fetchwell_source::{Accuracy, Change, Count, SourceError};
use serde::de::{MapAccess, SeqAccess};
use serde_json::Value;

use super::members::{Item, Members};
use super::record::item;
use super::tolerant::{Any, Lookup, Tolerant, member, text, whole};
use super::{parse, wrong_shape};

/// Page of records as the server returned it.
#[derive(Debug, Default)]
pub struct RecordList {
    /// Records in the server's order; `None` stands for one that no handle can name.
    pub(crate) items: Vec<Option<Change>>,
    /// Cursor of the next page.
    pub(crate) next_cursor: Option<String>,
    /// True if there are more pages, or `None` if the server does not say.
    pub(crate) has_more: Option<bool>,
    /// Token from which later changes can be read.
    pub(crate) next_changes: Option<String>,
    /// Total number of records, if it was counted.
    pub(crate) count: Option<Count>,
}

impl RecordList {
    /// Returns the list with a permit that each of its records shares.
    pub(crate) fn with_memory(mut self, memory: &MemoryPermit) -> Self {
        for change in self.items.iter_mut().flatten() {
            if let Change::Present(record) = change {
                record.memory = memory.clone();
            }
        }
        self
    }
}

/// Parses the list under `data`, `records`, `results`, `hits` or `items`, up to two levels down.
pub fn records(
    body: &[u8],
    stream: &StreamName,
    connection: Option<&ConnectionId>,
) -> Result<RecordList, SourceError> {
    let mut list = RecordList::default();
    let Any(node) = parse(body)?;
    let items = descend(node, &mut list, MAX_LEVELS).ok_or(wrong_shape("list of records"))?;
    list.items = items.into_iter().map(|Item(members)| item(members?, Some(stream), connection)).collect();
    Ok(list)
}

/// Maximum nesting of a list, as in `{"data":{"data":{"records":[]}}}`.
const MAX_LEVELS: usize = 3;

/// Names of a list, the first that there is counts.
const LISTS: [&str; 5] = ["data", "records", "results", "hits", "items"];

/// A response, or a member that may be or contain the list.
#[derive(Default)]
enum Node {
    List(Vec<Item>),
    Object(Body),
    #[default]
    Other,
}

/// An object with lists, and other members.
#[derive(Default)]
struct Body {
    /// Members with a name of a list.
    lists: Vec<(String, Node)>,
    members: Members,
}

/// Descends to the list and reads the members beside it on the way.
fn descend(node: Node, found: &mut RecordList, levels: usize) -> Option<Vec<Item>> {
    let Body { mut lists, members } = match node {
        Node::List(items) if levels < MAX_LEVELS => return Some(items),
        Node::Object(body) if levels > 0 => body,
        _ => return None,
    };
    let own = |names: &[&str]| text(&members, names).map(str::to_owned);
    found.next_cursor = found.next_cursor.take().or_else(|| own(&["next_cursor", "nextCursor"]));
    found.next_changes =
        found.next_changes.take().or_else(|| own(&["next_changes_since", "nextChangesSince"]));
    found.has_more = found.has_more.or_else(|| member(&members, &["has_more", "hasMore"])?.as_bool());
    found.count = found.count.or_else(|| count(members.get("meta")?.as_object()?));
    let place =
        |name: &&str| lists.iter().position(|(own, node)| own == name && !matches!(node, Node::Other));
    let place = LISTS.iter().find_map(place)?;
    descend(lists.swap_remove(place).1, found, levels - 1)
}

impl<'de> Tolerant<'de> for Node {
    fn from_map<A: MapAccess<'de>>(mut fields: A) -> Result<Self, A::Error> {
        let mut body = Body::default();
        while let Some(name) = fields.next_key::<String>()? {
            if LISTS.contains(&name.as_str()) {
                let Any(node) = fields.next_value()?;
                body.lists.retain(|(own, _)| *own != name);
                body.lists.push((name, node));
            } else {
                body.members.insert(name, fields.next_value()?);
            }
        }
        Ok(Self::Object(body))
    }

    fn from_list<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        let mut list = Vec::new();
        while let Some(Any(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Self::List(list))
    }
}

/// Parses `{"count":{"kind":"exact","value":80}}`, or a bare number.
fn count(meta: &RecordData) -> Option<Count> {
    match meta.get("count")? {
        Value::Object(count) => {
            let accuracy = accuracy(text(count, &["kind", "accuracy"]).unwrap_or_default());
            Some(Count { value: whole(count, &["value", "count"])?, accuracy })
        }
        bare => {
            let accuracy = accuracy(text(meta, &["count_accuracy", "countAccuracy"]).unwrap_or("exact"));
            Some(Count { value: bare.as_u64()?, accuracy })
        }
    }
}

fn accuracy(word: &str) -> Accuracy {
    match word {
        "exact" => Accuracy::Exact,
        "lower_bound" => Accuracy::LowerBound,
        _ => Accuracy::Estimated,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn recorded(name: &str) -> RecordList {
        let file = format!("{}/../../fixtures/record-server/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let reply: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        read(&reply["response"]).unwrap()
    }

    fn read(body: &Value) -> Result<RecordList, SourceError> {
        records(body.to_string().as_bytes(), &"messages".parse().unwrap(), None)
    }

    fn names(list: &RecordList) -> Vec<String> {
        let name = |item: &Option<Change>| match item {
            Some(Change::Present(record)) => {
                format!("{}/{}", record.address.connection.as_ref().unwrap(), record.address.record)
            }
            Some(Change::Deleted { address, deleted_at }) => format!("-{} {deleted_at:?}", address.record),
            None => "?".to_owned(),
        };
        list.items.iter().map(name).collect()
    }

    #[test]
    fn recorded_pages_are_read() {
        for (name, first, rows, has_next, has_more, count) in [
            ("records-conn-limit2", "cin_work/m27", 2, true, true, None),
            ("records-conn-cursor-page2", "cin_work/m25", 2, true, true, None),
            ("records-connection", "cin_home/m27", 1, true, true, None),
            ("records-limit2", "cin_work/m27", 4, false, true, None),
            ("records-count-exact", "cin_work/m27", 2, false, true, Some(Count::exact(80))),
            ("records-fields-repeat", "cin_work/m27", 2, false, true, None),
        ] {
            let list = recorded(name);
            assert_eq!((names(&list)[0].as_str(), list.items.len()), (first, rows), "{name}");
            assert_eq!((list.next_cursor.is_some(), list.has_more), (has_next, Some(has_more)), "{name}");
            assert_eq!(list.count, count, "{name}");
        }
        let changes = recorded("records-changes-next");
        assert_eq!((changes.items.len(), changes.has_more), (0, Some(false)));
        assert_eq!(
            changes.next_changes.as_deref(),
            Some("eyJraW5kIjoiY2hhbmdlc19zaW5jZSIsInZlcnNpb24iOjQwfQ==")
        );
    }

    #[test]
    fn every_shape_of_a_list_is_read() {
        let row = json!({"id": "m1", "connection_id": "c", "data": {}});
        for body in [
            json!({"data": [row]}),
            json!({"records": [row], "data": "neither"}),
            json!({"results": [row]}),
            json!({"hits": [row]}),
            json!({"data": {"records": [row]}}),
            json!({"data": {"data": {"items": [row]}}}),
        ] {
            assert_eq!(names(&read(&body).unwrap()), ["c/m1"], "{body}");
        }
        let wrapped = json!({"data": {"data": [row, 7, {"id": ".."}], "nextCursor": "x", "hasMore": true,
            "meta": {"count": 9, "count_accuracy": "lower_bound"}}});
        let list = read(&wrapped).unwrap();
        assert_eq!((list.next_cursor.as_deref(), list.has_more), (Some("x"), Some(true)));
        assert_eq!(list.count, Some(Count { value: 9, accuracy: Accuracy::LowerBound }));
        assert_eq!(names(&list), ["c/m1", "?", "?"]);
        let gone = read(&json!({"data": [{"id": "m1", "deleted": true, "deleted_at": "t"}]})).unwrap();
        assert_eq!(names(&gone), ["-m1 Some(\"t\")"]);
    }

    #[test]
    fn an_answer_without_a_list_is_refused() {
        for body in [
            json!({}),
            json!([]),
            json!(7),
            json!({"data": {}}),
            json!({"data": {"data": {"data": {"data": []}}}}),
        ] {
            assert!(matches!(read(&body), Err(SourceError::Protocol(_))), "{body}");
        }
    }
}
