//! Tools and prompts that ask the client for input, as in the revision of 2026-07-28: the result contains questions,
//! and the client calls again with the answers and the signed state that it received.

use rmcp::RoleServer;
use rmcp::model::{
    CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock, ErrorData, GetPromptResponse,
    GetPromptResult, InputRequest, InputRequests, InputRequiredResult, InputResponses, PromptMessage,
    RequestStateCodec, Role,
};
use rmcp::service::RequestContext;

/// Signs and verifies states, with a key that is generated at startup.
#[derive(Debug)]
pub(super) struct Rounds(Option<RequestStateCodec>);

impl Default for Rounds {
    fn default() -> Self {
        let mut key = [0; 32];
        Self(getrandom::fill(&mut key).ok().and_then(|()| RequestStateCodec::try_new(key).ok()))
    }
}

/// The state and the answers in a repeated call.
#[derive(Debug)]
pub(super) struct ClientReply {
    pub(super) state: Option<String>,
    pub(super) responses: Option<InputResponses>,
}

/// The result of a call.
#[derive(Debug)]
pub(super) enum Round {
    /// Questions to the client.
    Questions(InputRequiredResult),
    /// The serialized answers, once they are complete.
    Done(String),
}

impl Rounds {
    /// Returns the next round of a tool or prompt, after the client's reply to the last one.
    pub(super) fn next(
        &self,
        name: &str,
        rounds: &[InputRequests],
        ClientReply { state, responses }: ClientReply,
        context: &RequestContext<RoleServer>,
    ) -> Result<Round, ErrorData> {
        let codec = self.0.as_ref().ok_or_else(|| ErrorData::internal_error("there is no key", None))?;
        let foreign =
            || ErrorData::invalid_params("requestState is not as it was given; send it unchanged", None);
        let mut number = match state {
            None => 0,
            Some(state) => {
                let said = codec.open(&state).map_err(|_refused| foreign())?;
                let said = String::from_utf8(said).map_err(|_refused| foreign())?;
                said.strip_prefix(name)
                    .and_then(|rest| rest.strip_prefix('/')?.parse().ok())
                    .ok_or_else(foreign)?
            }
        };
        let client = context.client_capabilities().unwrap_or_default();
        let responses = responses.unwrap_or_default();
        let asked = |number: usize| rounds.get(number).map(|questions| questions_for(&client, questions));
        if let Some(questions) = asked(number) {
            let answered =
                |question: &String| responses.get(question).is_some_and(|answer| answer.is_object());
            if !questions.is_empty() && questions.keys().all(answered) {
                number += 1;
            }
        }
        let Some(questions) = asked(number) else {
            let answers = serde_json::to_string(&responses).unwrap_or_default();
            return Ok(Round::Done(format!("state-ok: {answers}")));
        };
        let state = codec.seal(format!("{name}/{number}").as_bytes());
        Ok(Round::Questions(InputRequiredResult::new(Some(questions), Some(state))))
    }
}

/// Returns the questions that the client's capabilities support.
fn questions_for(client: &ClientCapabilities, questions: &InputRequests) -> InputRequests {
    let can_be_asked = |question: &InputRequest| match question {
        InputRequest::CreateMessage(_) => client.sampling.is_some(),
        InputRequest::Elicitation(_) => client.elicitation.is_some(),
        InputRequest::ListRoots(_) => client.roots.is_some(),
        _ => false,
    };
    let questions = questions.iter().filter(|(_, question)| can_be_asked(question));
    questions.map(|(name, question)| (name.clone(), question.clone())).collect()
}

impl Round {
    pub(super) fn into_tool_response(self) -> CallToolResponse {
        match self {
            Self::Questions(questions) => questions.into(),
            Self::Done(text) => CallToolResult::success(vec![ContentBlock::text(text)]).into(),
        }
    }

    pub(super) fn into_prompt_response(self) -> GetPromptResponse {
        match self {
            Self::Questions(questions) => questions.into(),
            Self::Done(text) => GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into(),
        }
    }
}
