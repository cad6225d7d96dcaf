//! Tools and prompts that ask before they answer, as the revision of 2026-07-28 has it: the questions are a result, and
//! the client calls again with the answers and with the state it was given, which is signed.

use rmcp::RoleServer;
use rmcp::model::{
    CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock, ErrorData, GetPromptResponse,
    GetPromptResult, InputRequest, InputRequests, InputRequiredResult, InputResponses, PromptMessage,
    RequestStateCodec, Role,
};
use rmcp::service::RequestContext;

/// Signs and reads states; a program has one key for as long as it runs.
#[derive(Debug)]
pub(super) struct Rounds(Option<RequestStateCodec>);

impl Default for Rounds {
    fn default() -> Self {
        let mut key = [0; 32];
        Self(getrandom::fill(&mut key).ok().and_then(|()| RequestStateCodec::try_new(key).ok()))
    }
}

/// What a client sends with a call that it makes again.
#[derive(Debug)]
pub(super) struct Brought {
    pub(super) state: Option<String>,
    pub(super) responses: Option<InputResponses>,
}

/// What comes of a call.
#[derive(Debug)]
pub(super) enum Round {
    /// More questions.
    Asked(InputRequiredResult),
    /// The answers were all there; this is what they were.
    Done(String),
}

impl Rounds {
    /// The next of a tool's or a prompt's rounds, after what the client brings back of the last.
    pub(super) fn next(
        &self,
        (name, rounds): (&str, &[InputRequests]),
        Brought { state, responses }: Brought,
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
        Ok(Round::Asked(InputRequiredResult::new(Some(questions), Some(state))))
    }
}

/// The questions that the client says it can be asked.
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
            Self::Asked(questions) => questions.into(),
            Self::Done(text) => CallToolResult::success(vec![ContentBlock::text(text)]).into(),
        }
    }

    pub(super) fn into_prompt_response(self) -> GetPromptResponse {
        match self {
            Self::Asked(questions) => questions.into(),
            Self::Done(text) => GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into(),
        }
    }
}
