//! The server with the fixtures that the official conformance suite requires: tools, prompts and resources that exist
//! only in builds with the feature `conformance`.
//!
//! It replaces `super::handler::Server`, so that transports, lists and errors are those of every build. Its
//! fixtures are data (`fixtures.json`) where possible. The requirements of the suite are in `docs/conformance.md`.
//!
//! * `fixtures`: the data
//! * `notices`: notifications
//! * `rounds`: tools and prompts that ask the client for input

#![expect(deprecated, reason = "the suite asks for logging, sampling and subscriptions of older revisions")]

mod fixtures;
mod notices;
mod rounds;

use std::sync::Arc;

use fetchwell_telemetry::Telemetry;
use fetchwell_tools::{Profile, SharedToolbox};
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, ClientCapabilities, CompleteRequestParams,
    CompleteResult, CustomRequest, CustomResult, ErrorData, GetPromptRequestParams, GetPromptResponse,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ServerCapabilities, ServerConfig, SetLevelRequestMethod, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};

use self::fixtures::fixtures;
use self::notices::{Changes, log, log_where_asked, progress};
use self::rounds::{ClientReply, Rounds};
use super::handler::{self, supports_cache_hints};

/// Time for which a client may cache a list, in milliseconds.
const LIST_TTL_MS: u64 = 1_000;

/// The server with the fixtures of the suite.
#[derive(Debug, Clone)]
pub struct Server {
    inner: handler::Server,
    changes: Changes,
    rounds: Arc<Rounds>,
}

impl Server {
    /// Creates a server with the tools of `profile` and those of the suite.
    #[must_use]
    pub fn new(toolbox: SharedToolbox, profile: Profile, telemetry: Telemetry) -> Self {
        Self::around(handler::Server::new(toolbox, profile, telemetry))
    }

    /// Returns `None`: the fixtures of the suite send notifications, which need a session.
    pub(crate) fn without_session(&self) -> Option<&handler::Server> {
        let _ = self;
        None
    }

    /// Creates a server that takes the toolbox from the extensions of each HTTP request.
    #[must_use]
    pub fn for_requests(profile: Profile, telemetry: Telemetry) -> Self {
        Self::around(handler::Server::for_requests(profile, telemetry))
    }

    fn around(inner: handler::Server) -> Self {
        Self { inner, changes: Changes::default(), rounds: Arc::default() }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.inner.get_info();
        info.capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_completions()
            .enable_logging()
            .build();
        info
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut list = self.inner.list_tools(request, context).await?;
        list.tools.extend(fixtures().tools.iter().cloned());
        Ok(list)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.inner.get_tool(name).or_else(|| fixtures().tool(name).cloned())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.clone();
        if fixtures().tool(&name).is_none() {
            return self.inner.call_tool(request, context).await;
        }
        if let Some(rounds) = fixtures().rounds.get(&*name) {
            let reply = ClientReply { state: request.request_state, responses: request.input_responses };
            let round = self.rounds.next(&name, rounds, reply, &context)?;
            return Ok(round.into_tool_response());
        }
        match &*name {
            "test_tool_with_logging" => log(&context).await,
            "test_logging_tool" => log_where_asked(&context).await,
            "test_tool_with_progress" => progress(&context).await,
            "test_trigger_tool_change" => self.changes.tools(),
            "test_trigger_prompt_change" => self.changes.prompts(),
            "test_missing_capability" => can_sample(&context)?,
            _ => {}
        }
        fixtures().result(&name).map(CallToolResponse::from)
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let list = ListPromptsResult::with_all_items(fixtures().prompts.clone());
        if supports_cache_hints(&context) {
            return Ok(list.with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Public));
        }
        Ok(list)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let name = request.name;
        if let Some(rounds) = fixtures().rounds.get(&name).filter(|_| fixtures().has_prompt(&name)) {
            let reply = ClientReply { state: request.request_state, responses: request.input_responses };
            let round = self.rounds.next(&name, rounds, reply, &context)?;
            return Ok(round.into_prompt_response());
        }
        fixtures().prompt(&name, &request.arguments.unwrap_or_default()).map(GetPromptResponse::from)
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Ok(CompleteResult::default())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let list = ListResourcesResult::with_all_items(fixtures().resources.clone());
        if supports_cache_hints(&context) {
            return Ok(list.with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Public));
        }
        Ok(list)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut list = self.inner.list_resource_templates(request, context).await?;
        list.resource_templates.extend(fixtures().templates.iter().cloned());
        Ok(list)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let Some(contents) = fixtures().contents(&request.uri) else {
            return self.inner.read_resource(request, context).await;
        };
        let result = ReadResourceResult::new(vec![contents]);
        if supports_cache_hints(&context) {
            return Ok(result.with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Public).into());
        }
        Ok(result.into())
    }

    async fn set_level(
        &self,
        _request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // Later revisions set the level in each request.
        if supports_cache_hints(&context) {
            Err(ErrorData::method_not_found::<SetLevelRequestMethod>())
        } else {
            Ok(())
        }
    }

    async fn subscribe(
        &self,
        _request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.changes.forward(&context).await;
        Ok(())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        self.inner.on_custom_request(request, context).await
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.inner.on_initialized(context).await;
    }
}

/// Returns the error of a tool that requires sampling if the client does not support it.
fn can_sample(context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
    if context.client_capabilities().is_some_and(|client| client.sampling.is_some()) {
        return Ok(());
    }
    Err(ErrorData::missing_required_client_capability(
        ClientCapabilities::builder().enable_sampling().build(),
    ))
}
