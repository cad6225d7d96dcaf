//! The tools of each profile, and calls by the name of a tool.
//!
//! A [`Registry`] lists the tools of a profile in the order that clients see. To add a tool, write its module and add it to
//! [`STANDARD`]. [`Toolbox::call`] finds a tool by its name, normalizes the arguments by its input schema and runs the call
//! within the deadline.

use std::sync::LazyLock;

use fetchwell_core::handle::PartId;
use fetchwell_core::record::RecordData;
use futures_util::future::BoxFuture;
use tokio::time::{Instant, timeout};

use super::aggregate::Aggregate;
use super::answer::Payload;
use super::arguments::DeclaredArguments;
use super::error::ToolError;
use super::fetch::{Fetch, FetchOpenAi};
use super::get_document::GetDocument;
use super::list_categories::ListCategories;
use super::profile::Profile;
use super::query_records::QueryRecords;
use super::read_record_field::ReadRecordField;
use super::schema::Schema;
use super::search::{ExplainedSearch, Search, SearchOpenAi};
use super::search_docs::SearchDocs;
use super::tool::{Tool, ToolCall, ToolSpec};
use super::toolbox::Toolbox;

/// Tools of the profile `standard`.
static STANDARD: LazyLock<Registry> = LazyLock::new(|| {
    Registry::default()
        .with::<Search>()
        .with::<Fetch>()
        .with::<Schema>()
        .with::<QueryRecords>()
        .with::<Aggregate>()
        .with::<ReadRecordField>()
});

/// Tools of the profile `openai`.
static OPENAI: LazyLock<Registry> =
    LazyLock::new(|| Registry::default().with::<SearchOpenAi>().with::<FetchOpenAi>());

/// Tools of the profile `docs`.
static DOCS: LazyLock<Registry> =
    LazyLock::new(|| Registry::default().with::<SearchDocs>().with::<GetDocument>().with::<ListCategories>());

/// The tools of a profile.
#[derive(Default)]
struct Registry {
    specs: Vec<ToolSpec>,
    tools: Vec<RegisteredTool>,
}

/// A tool without the type of its arguments.
struct RegisteredTool {
    declared: DeclaredArguments,
    run: for<'a> fn(ToolCall<'a>, RecordData) -> BoxFuture<'a, Result<Payload, ToolError>>,
}

impl Registry {
    /// Adds a tool at the end of the list.
    fn with<T: Tool>(mut self) -> Self {
        self.specs.push(T::SPEC);
        self.tools.push(RegisteredTool { declared: DeclaredArguments::new(&T::SPEC), run: run::<T> });
        self
    }

    fn get(&self, name: &str) -> Option<(&ToolSpec, &RegisteredTool)> {
        self.specs.iter().zip(&self.tools).find(|(spec, _)| spec.name == name)
    }
}

impl RegisteredTool {
    async fn call(&self, toolbox: &Toolbox, arguments: RecordData) -> Result<Payload, ToolError> {
        let started = Instant::now();
        let normalized = self.declared.normalize(arguments)?;
        let call = ToolCall { toolbox, warnings: normalized.warnings, started };
        (self.run)(call, normalized.values).await
    }
}

fn run<T: Tool>(call: ToolCall<'_>, arguments: RecordData) -> BoxFuture<'_, Result<Payload, ToolError>> {
    Box::pin(async move {
        let arguments = T::parse(&call, arguments).await?;
        T::call(call, arguments).await
    })
}

impl Profile {
    /// Returns the specifications of the tools, in the order that clients see.
    #[must_use]
    pub fn tools(self) -> &'static [ToolSpec] {
        &self.registry().specs
    }

    fn registry(self) -> &'static Registry {
        match self {
            Self::Standard => &STANDARD,
            Self::OpenAi => &OPENAI,
            Self::Docs => &DOCS,
        }
    }
}

impl Toolbox {
    /// Calls a tool of a profile. Returns `None` if the profile has no tool of that name.
    ///
    /// Dropping the future cancels the call, down to the request to the source.
    ///
    /// # Errors
    ///
    /// See [`ToolError`].
    pub async fn call(
        &self,
        profile: Profile,
        tool: &str,
        arguments: RecordData,
    ) -> Option<Result<Payload, ToolError>> {
        let (spec, tool) = profile.registry().get(tool)?;
        let answer = timeout(self.call_deadline(), tool.call(self, arguments)).await;
        let answer = answer.unwrap_or_else(|_elapsed| Err(self.deadline_exceeded()));
        Some(answer.map_err(|error| error.with_hints(spec.hints)))
    }

    /// Searches as the tool `search` of the profile `standard` does, and explains the results.
    ///
    /// # Errors
    ///
    /// See [`ToolError`].
    pub async fn search_explained(&self, arguments: RecordData) -> Result<ExplainedSearch, ToolError> {
        let started = Instant::now();
        let search = Box::pin(async {
            let normalized = DeclaredArguments::new(&Search::SPEC).normalize(arguments)?;
            let call = ToolCall { toolbox: self, warnings: normalized.warnings, started };
            let arguments = Search::parse(&call, normalized.values).await?;
            Search::explained(call, arguments).await
        });
        let answer = timeout(self.call_deadline(), search).await;
        let answer = answer.unwrap_or_else(|_elapsed| Err(self.deadline_exceeded()));
        answer.map_err(|error| error.with_hints(Search::SPEC.hints))
    }

    /// Returns a record as `fetch` gives it, in the same parts, for a page.
    ///
    /// # Errors
    ///
    /// See [`ToolError`].
    pub async fn read(&self, id: &PartId) -> Result<Payload, ToolError> {
        let arguments = [("id".to_owned(), id.to_string().into())].into_iter().collect();
        let call = ToolCall { toolbox: self, warnings: Vec::new(), started: Instant::now() };
        let answer = timeout(self.call_deadline(), run::<Fetch>(call, arguments)).await;
        answer.unwrap_or_else(|_elapsed| Err(self.deadline_exceeded()))
    }

    pub(crate) fn deadline_exceeded(&self) -> ToolError {
        ToolError::Timeout { seconds: self.call_deadline().as_secs() }
    }
}
