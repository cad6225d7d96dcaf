//! The call that the parameters of the page describe, and its measured answer.

use fetchwell_core::fit::{PageBudget, budget, count_tokens};
use fetchwell_core::record::RecordData;
use fetchwell_tools::{Profile, Toolbox};
use serde_json::Value;

use crate::pages::access::parameter;

/// Maximum value of `limit`.
const MAX_LIMIT: usize = 100;

/// Tools that can be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ModelTool {
    #[default]
    Search,
    Fetch,
}

/// A call of a tool.
#[derive(Debug, Clone, Default)]
pub(super) struct ModelCall {
    pub(super) tool: ModelTool,
    /// Query of `search`, or id for `fetch`.
    pub(super) value: String,
    /// Number of results; `None` leaves it out.
    pub(super) limit: Option<usize>,
    /// True for the profile `openai`.
    pub(super) is_openai: bool,
}

/// The answer to a call with its size.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    /// Arguments of the call as JSON.
    pub(super) arguments: String,
    /// Payload as compact JSON: the bytes that the model gets.
    pub(super) payload: String,
    /// True for an error of the tool.
    pub(super) is_error: bool,
    pub(super) bytes: usize,
    pub(super) max_bytes: usize,
    /// Number of o200k tokens.
    pub(super) tokens: usize,
    pub(super) max_tokens: usize,
}

impl ModelTool {
    /// Returns the name of the tool.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Search => "search",
            Self::Fetch => "fetch",
        }
    }
}

impl ModelCall {
    /// Reads the parameters of a request.
    pub(super) fn from_query(query: &str) -> Self {
        let value = |name: &str| parameter(query.as_bytes(), name).unwrap_or_default();
        let tool = if value("tool") == "fetch" { ModelTool::Fetch } else { ModelTool::Search };
        let limit = value("limit").trim().parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit));
        let is_openai = value("profile") == "openai";
        let limit = limit.filter(|_| tool == ModelTool::Search && !is_openai);
        Self { tool, value: value("value").trim().to_owned(), limit, is_openai }
    }

    /// Returns the arguments of the call.
    fn arguments(&self) -> RecordData {
        let name = match self.tool {
            ModelTool::Search => "query",
            ModelTool::Fetch => "id",
        };
        let mut arguments = RecordData::from_iter([(name.to_owned(), Value::from(self.value.as_str()))]);
        arguments.extend(self.limit.map(|limit| ("limit".to_owned(), Value::from(limit))));
        arguments
    }

    /// Calls the tool as a client does, and measures the answer.
    pub(super) async fn measure(&self, toolbox: &Toolbox) -> Measured {
        let profile = if self.is_openai { Profile::OpenAi } else { Profile::Standard };
        let arguments = self.arguments();
        let written = Value::Object(arguments.clone()).to_string();
        // Both tools are in both profiles.
        let answer = toolbox.call(profile, self.tool.as_str(), arguments).await;
        let (payload, is_error) = match answer {
            Some(Ok(payload)) => (payload.json().to_owned(), false),
            Some(Err(error)) => (error.body().json(), true),
            None => (String::new(), true),
        };
        let PageBudget { bytes: max_bytes, tokens: max_tokens } = self.budget(toolbox, is_error);
        let (bytes, tokens) = (payload.len(), count_tokens(&payload));
        Measured { arguments: written, payload, is_error, bytes, max_bytes, tokens, max_tokens }
    }

    fn budget(&self, toolbox: &Toolbox, is_error: bool) -> PageBudget {
        let whole = PageBudget::whole(&toolbox.protection().limits(&format!("tool:{}", self.tool.as_str())));
        let bytes = match (self.tool, self.limit) {
            _ if is_error => budget::ERROR,
            (ModelTool::Fetch, _) => whole.bytes,
            (ModelTool::Search, _) if self.is_openai => budget::SEARCH_OPENAI,
            (ModelTool::Search, Some(limit)) => budget::search_with_limit(limit),
            (ModelTool::Search, None) => budget::SEARCH,
        };
        PageBudget { bytes: bytes.min(whole.bytes), ..whole }
    }
}
