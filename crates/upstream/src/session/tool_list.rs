//! The list of a server's tools, read entry by entry: one that is not valid does not hide the others.

use std::collections::{BTreeSet, HashSet};

use rmcp::model::{ClientRequest, CustomResult, ListToolsRequest, PaginatedRequestParams, ServerResult};
use rmcp::service::{Peer, RoleClient};
use serde_json::Value;

use crate::fault::Problem;
use crate::mapping::Mapping;
use crate::tool_info::ToolInfo;
use crate::tools::{Tools, is_complete, is_named, recognize};

/// Maximum number of tools that are kept beside those that are called, and of pages of them that are read.
const MAX_TOOLS: usize = 2_000;
const MAX_TOOL_PAGES: usize = 200;

/// The tools of a server.
#[derive(Debug)]
pub(crate) struct ToolList {
    /// Tools that were read, each name once.
    pub(crate) all: Vec<ToolInfo>,
    /// Number of entries that cannot be read.
    pub(crate) unread: usize,
    /// Names of several tools, of which the first one is used.
    pub(crate) repeated: BTreeSet<String>,
    /// The tools that are called, or the reason why none is.
    pub(crate) used: Result<Tools, Problem>,
    /// Number of changes that the server had announced.
    pub(super) changes: u64,
}

impl ToolList {
    /// Creates the list of a session that has not read it.
    pub(super) fn new() -> Self {
        Self::from_tools(CollectedTools::default(), &Mapping::default(), 0)
    }

    /// Reads the list of a server. It ends when the tools that are called are known.
    pub(super) async fn read(
        peer: &Peer<RoleClient>,
        mapping: &Mapping,
        changes: u64,
    ) -> Result<Self, Problem> {
        let mut collected = CollectedTools::default();
        let mut cursor = None;
        for _page in 0..MAX_TOOL_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let request = ListToolsRequest::with_param(page);
            let answer = peer.send_request(ClientRequest::ListToolsRequest(request)).await;
            let page = ToolPage::try_from(answer.map_err(|error| Problem::of_call(&error))?)?;
            collected.add(page.tools, mapping);
            collected.unread += page.unread;
            cursor = page.next;
            if cursor.is_none() || is_complete(&collected.all, mapping) {
                break;
            }
        }
        Ok(Self::from_tools(collected, mapping, changes))
    }

    fn from_tools(collected: CollectedTools, mapping: &Mapping, changes: u64) -> Self {
        let CollectedTools { all, unread, repeated, .. } = collected;
        let used = recognize(&all, mapping).map_err(Problem::Tools);
        Self { all, unread, repeated, used, changes }
    }
}

/// Tools of the pages that were read.
#[derive(Debug, Default)]
struct CollectedTools {
    all: Vec<ToolInfo>,
    names: HashSet<String>,
    unread: usize,
    repeated: BTreeSet<String>,
}

impl CollectedTools {
    fn add(&mut self, tools: Vec<ToolInfo>, mapping: &Mapping) {
        for tool in tools {
            if self.names.contains(&tool.name) {
                // A call of the name may run any of its tools.
                let known = self.all.iter_mut().find(|known| known.name == tool.name);
                if let Some(known) = known.filter(|_| tool.is_destructive) {
                    known.is_destructive = true;
                }
                self.repeated.insert(tool.name);
            } else if self.all.len() < MAX_TOOLS || is_named(&tool.name, mapping) {
                self.names.insert(tool.name.clone());
                self.all.push(tool);
            }
        }
    }
}

/// Page of a list of tools.
#[derive(Debug)]
struct ToolPage {
    tools: Vec<ToolInfo>,
    unread: usize,
    next: Option<String>,
}

impl TryFrom<ServerResult> for ToolPage {
    type Error = Problem;

    fn try_from(result: ServerResult) -> Result<Self, Problem> {
        match result {
            ServerResult::ListToolsResult(page) => {
                let tools = page.tools.into_iter().map(ToolInfo::from).collect();
                Ok(Self { tools, unread: 0, next: page.next_cursor })
            }
            // An answer with an entry that is not valid is none of the protocol's results.
            ServerResult::CustomResult(CustomResult(answer)) => Self::from_json(answer),
            _ => Err(no_list()),
        }
    }
}

impl ToolPage {
    fn from_json(mut answer: Value) -> Result<Self, Problem> {
        let Some(Value::Array(entries)) = answer.get_mut("tools").map(Value::take) else {
            return Err(no_list());
        };
        let count = entries.len();
        let tools: Vec<ToolInfo> = entries.into_iter().filter_map(ToolInfo::from_json).collect();
        let next = answer.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
        Ok(Self { unread: count - tools.len(), tools, next })
    }
}

fn no_list() -> Problem {
    Problem::InvalidMessage("the answer to `tools/list` has no list of tools".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, argument: &str) -> Value {
        json!({"name": name, "inputSchema": {"type": "object", "properties": {argument: {}}, "required": [argument]}})
    }

    fn names(tools: &[ToolInfo]) -> Vec<&str> {
        tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    #[test]
    fn entries_that_are_not_valid_are_counted_and_the_others_read() {
        let mut odd = tool("search", "query");
        // Other keys may have any value.
        odd["title"] = json!(7);
        odd["icons"] = json!("x");
        let hints = json!({"name": "purge", "inputSchema": {}, "annotations": {"destructiveHint": "yes"}});
        let answer = json!({"nextCursor": "2", "tools": [
            odd, 7, null, {"name": "bare"}, {"name": 5, "inputSchema": {}}, {"name": "list", "inputSchema": []}, hints,
            tool("fetch", "id"),
        ]});
        let result: ServerResult = serde_json::from_value(answer).unwrap();
        let page = ToolPage::try_from(result).unwrap();
        assert_eq!((names(&page.tools), page.unread), (vec!["search", "fetch"], 6));
        assert_eq!(page.next.as_deref(), Some("2"));
        for answer in [json!({"tools": 1}), json!({"content": []}), json!({})] {
            let result: ServerResult = serde_json::from_value(answer.clone()).unwrap();
            assert!(matches!(ToolPage::try_from(result), Err(Problem::InvalidMessage(_))), "{answer}");
        }
    }

    #[test]
    fn the_first_of_several_tools_of_one_name_is_used() {
        let tools =
            [tool("search", "query"), tool("search", "text"), tool("fetch", "id"), tool("search", "q")];
        let page = ToolPage::from_json(json!({"tools": tools})).unwrap();
        let mut collected = CollectedTools::default();
        collected.add(page.tools, &Mapping::default());
        let list = ToolList::from_tools(collected, &Mapping::default(), 0);
        assert_eq!(names(&list.all), ["search", "fetch"]);
        assert_eq!(list.repeated, BTreeSet::from(["search".to_owned()]));
        assert_eq!(list.used.unwrap().search.query.as_deref(), Some("query"));
    }

    #[test]
    fn a_name_that_one_of_its_tools_makes_destructive_is_not_called() {
        let mut other = tool("fetch", "id");
        other["annotations"] = json!({"destructiveHint": true});
        let tools = [tool("search", "query"), tool("fetch", "id"), other];
        let mut collected = CollectedTools::default();
        collected.add(ToolPage::from_json(json!({"tools": tools})).unwrap().tools, &Mapping::default());
        assert!(ToolList::from_tools(collected, &Mapping::default(), 0).used.is_err());
    }
}
