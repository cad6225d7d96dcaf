//! One record: itself when it is within the threshold or was asked for, else a summary that says how to get the rest.

use std::sync::Arc;

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::Call;
use super::answer::Answer;
use super::error::Failure;
use super::fields::{Fields, known, with_id};
use super::marks;
use super::meta::{BudgetMeta, Details, GROUPS_NAMED, RecordMeta, groups, token_budget};
use super::routes::Route;
use crate::fit::budget::BYTES_PER_TOKEN;
use crate::fit::{PageBudget, Shaping, TokenBudget, count_tokens, preview, tokens_within};
use crate::handle::{ConnectionId, Handle, RecordAddress, RecordId};
use crate::http::v1::{ApiError, SEGMENT};
use crate::record::{FieldPath, Record, RecordData, project};
use crate::source::{RecordQuery, StreamQuery};
use crate::tools::{Previews, beside_other_calls};

/// The least a summary may take, in tokens: below that it would say nothing.
const SUMMARY_LEAST: usize = 600;

/// A summary takes at most this part of what it stands for.
const SUMMARY_SHARE: (usize, usize) = (2, 5);

/// A record in less, or all of it with what is known of it.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SummaryResponse<'a> {
    /// The fields that tell most; long texts as `{"preview", "chars"}`.
    summary: &'a RecordData,
    meta: RecordMeta,
}

/// What is asked of one record.
struct Asked {
    fields: Fields,
    /// The record is to be put into an envelope, whole or not.
    with_meta: bool,
    connection: Option<ConnectionId>,
    endpoint: String,
}

pub(super) async fn answer(call: &mut Call<'_>, route: &Route, record: RecordId) -> Result<Answer, Failure> {
    let fields = Fields::read(call.parameters.take("fields").as_deref())?;
    let with_meta = call.parameters.flag("meta")?.unwrap_or_default();
    // It is about lists, and means nothing here.
    call.parameters.flag("summary")?;
    let connection = call.parameters.take("connection_id").map(|id| {
        id.parse::<ConnectionId>().map_err(|problem| ApiError::connection_not_found(&id, &problem))
    });
    let connection = connection.transpose()?;
    call.parameters.nothing_else()?;
    let source = call.toolbox.asked_source();
    let address = RecordAddress { connection: connection.clone(), stream: route.stream.clone(), record };
    let key = percent_encoding::utf8_percent_encode(address.record.as_str(), SEGMENT);
    let endpoint = format!("{}/{key}", call.path);
    let record = source.record(&RecordQuery::of(address)).await?;
    let stream = StreamQuery { stream: route.stream.clone(), connection: record.address.connection.clone() };
    let previews = call.toolbox.previews(stream.clone()).await;
    if let Fields::These(paths) = &fields {
        known(call, &stream, std::slice::from_ref(&record), paths).await?;
    }
    let asked = Asked { fields, with_meta, connection, endpoint };
    let (limits, estimator, compares) = (call.limits, call.toolbox.protection().estimator, call.compares);
    let cap = PageBudget::most(&limits);
    let shaped = beside_other_calls(move || {
        let data = match &asked.fields {
            Fields::These(paths) => with_id(&record, project(&record.data, paths)),
            Fields::All | Fields::Unsaid => record.data.clone(),
        };
        let json = serde_json::to_string(&data).unwrap_or_default();
        // A token is at least a byte: a short record is below the threshold, and nobody is told by how much.
        let estimated = match json.len() <= limits.threshold && !asked.with_meta {
            true => json.len() / BYTES_PER_TOKEN,
            false => estimator.tokens(&json, limits.hard_cap),
        };
        Ok(token_budget(&limits, estimated).map(|budget| {
            let summarizes = asked.fields == Fields::Unsaid && limits.summarization && budget.summary_mode();
            let original = if compares { count_tokens(&json) } else { 0 };
            let found = Found { record, asked, previews, budget, cap };
            let answer = if summarizes { found.summarized() } else { found.full(&data, json) };
            answer.map(|answer| {
                let returned = || count_tokens(&String::from_utf8_lossy(&answer.body));
                let compared = compares.then(|| (original, returned()));
                Answer { compared, ..answer }
            })
        }))
    });
    shaped.await??.ok_or_else(|| too_large(cap).into())
}

fn too_large(budget: PageBudget) -> ApiError {
    let problem = format!("not even the id of the record fits into the hard cap of {} tokens", budget.tokens);
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "response_too_large", problem)
        .hinting("Raise `hard_cap` for this path in the configuration.")
}

/// A record with all that decides how it is shown.
struct Found {
    record: Record,
    asked: Asked,
    previews: Arc<Previews>,
    budget: TokenBudget,
    cap: PageBudget,
}

impl Found {
    /// All that was asked for, or as much of it as fits under the hard cap.
    fn full(&self, data: &RecordData, json: String) -> Option<Answer> {
        let Self { record, asked, previews, budget, cap } = self;
        let cap = *cap;
        let enveloped = |kind: &'static str, shown: &RecordData| {
            let meta = RecordMeta {
                kind,
                total_fields: record.data.len(),
                total_fields_deep: deep(&record.data),
                projected_fields: shown.keys().cloned().collect(),
                details_available: None,
                budget: BudgetMeta::from(budget),
            };
            serde_json::to_string(&SummaryResponse { summary: shown, meta }).ok()
        };
        let body = if asked.with_meta { enveloped("full", data)? } else { json };
        let fields = Some((record.data.len(), data.len()));
        let shaping = Shaping { items: 1, fields, oversized: budget.summary_mode(), ..Shaping::default() };
        if body.len() <= cap.bytes
            && let Ok(tokens) = tokens_within(&body, cap.tokens)
        {
            return Some(Answer::shaped(body, Shaping { tokens, candidate_tokens: tokens, ..shaping }));
        }
        let shaping =
            Shaping { summarized: true, candidate_tokens: Some(budget.estimated_tokens()), ..shaping };
        let mut room = cap;
        while asked.with_meta && room.tokens > 0 {
            let body =
                enveloped("preview", &marks::within(record, data, previews.of(&record.address), room)?)?;
            match tokens_within(&body, cap.tokens) {
                Ok(tokens) if body.len() <= cap.bytes => {
                    return Some(Answer::shaped(body, Shaping { tokens, ..shaping }));
                }
                // What the envelope takes is known when it is written; each round takes a tenth, so it ends.
                _ => room = PageBudget { bytes: room.bytes * 9 / 10, tokens: room.tokens * 9 / 10 },
            }
        }
        let marked = marks::within(record, data, previews.of(&record.address), cap)?;
        Some(Answer::shaped(serde_json::to_string(&marked).ok()?, shaping))
    }

    /// The preview of a record, and how to get what is not in it.
    fn summarized(&self) -> Option<Answer> {
        let Self { record, asked, previews, budget, cap } = self;
        let share = budget.estimated_tokens() * SUMMARY_SHARE.0 / SUMMARY_SHARE.1;
        let tokens = budget.threshold().min(cap.tokens).min(share.max(SUMMARY_LEAST));
        let total_fields_deep = deep(&record.data);
        let most = PageBudget { bytes: tokens * BYTES_PER_TOKEN, tokens };
        let (mut room, mut named) = (most.bytes, GROUPS_NAMED);
        // Whatever tells most, a record is asked for by its id.
        let declared = [&[FieldPath::field("id")], previews.of(&record.address)].concat();
        loop {
            let shown = preview(&record.data, &declared, room);
            let (groups, more_groups) = groups(&shown.left_out, named);
            let details = Details {
                id: Handle::mint(&record.address).map(|handle| handle.to_string()),
                groups,
                more_groups,
                ..Details::of_all(asked.endpoint.clone(), asked.connection.as_ref())
            };
            let meta = RecordMeta {
                kind: "preview",
                total_fields: record.data.len(),
                total_fields_deep,
                projected_fields: shown.summary.keys().cloned().collect(),
                details_available: Some(details),
                budget: BudgetMeta::from(budget),
            };
            let body = serde_json::to_string(&SummaryResponse { summary: &shown.summary, meta }).ok()?;
            match tokens_within(&body, most.tokens) {
                Ok(counted) => {
                    let shaping = Shaping {
                        items: 1,
                        summarized: true,
                        oversized: true,
                        tokens: counted,
                        candidate_tokens: Some(budget.estimated_tokens()),
                        fields: Some((record.data.len(), shown.summary.len())),
                        ..Shaping::default()
                    };
                    return Some(Answer::shaped(body, shaping));
                }
                // What stands around it takes more than a half: fewer parts are named, then none.
                Err(_) if room < most.bytes / 2 && named > 0 => {
                    named /= 2;
                    room = most.bytes / 2;
                }
                // A budget too small for any summary: then as much of the record itself as fits.
                Err(_) if room == 0 => {
                    let marked = marks::within(record, &record.data, previews.of(&record.address), *cap)?;
                    let body = serde_json::to_string(&marked).ok()?;
                    let summarized = marked != record.data;
                    let shaping = Shaping { items: 1, summarized, oversized: true, ..Shaping::default() };
                    return Some(Answer::shaped(body, shaping));
                }
                Err(counted) => room = most.less_room(room, body.len(), counted),
            }
        }
    }
}

/// Fields of a record and of all objects inside.
fn deep(data: &RecordData) -> usize {
    fn inside(value: &Value) -> usize {
        match value {
            Value::Object(fields) => deep(fields),
            Value::Array(items) => items.iter().map(inside).sum(),
            _ => 0,
        }
    }
    data.len() + data.values().map(inside).sum::<usize>()
}
