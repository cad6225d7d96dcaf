//! `GET /api/v1/{collection}/{id}`: one record.
//!
//! Returns the record itself if it is within the token threshold or all of it was requested, otherwise a summary with
//! the calls that return the rest.

use std::sync::Arc;

use axum::http::StatusCode;
use fetchwell_core::fit::budget::BYTES_PER_TOKEN;
use fetchwell_core::fit::{
    Estimator, OmittedField, PageBudget, Preview, Shaping, TokenBudget, count_tokens, left_out, preview,
    tokens_within,
};
use fetchwell_core::handle::{ConnectionId, Handle, RecordAddress, RecordId};
use fetchwell_core::record::{FieldPath, Record, RecordData};
use fetchwell_source::{RecordQuery, StreamQuery};
use fetchwell_tools::{Previews, run_blocking};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::answer::with_comparison;
use super::call::Call;
use super::error::ApiError;
use super::fields::{Fields, known, only_id, select_paths, with_id};
use super::marks;
use super::meta::{BudgetMeta, Details, OmissionDetail, RecordMeta, groups, token_budget};
use super::parameters;
use super::routes::Route;
use crate::answer::Answer;
use crate::encoding::SEGMENT;
use crate::error::RequestError;

/// Minimum size of a summary in tokens; a smaller one would be useless.
const MIN_SUMMARY_TOKENS: usize = 600;

/// Maximum size of a summary as a fraction of the record.
const SUMMARY_SHARE: (usize, usize) = (2, 5);

/// A summary of a record, or the complete record, with its metadata.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SummaryResponse<'a> {
    /// The most important fields; long texts as `{"preview", "chars"}`.
    summary: &'a RecordData,
    meta: RecordMeta,
}

/// Parsed request for one record.
struct RecordRequest {
    fields: Fields,
    /// True if the record is returned in an envelope with metadata.
    with_meta: bool,
    connection: Option<ConnectionId>,
    endpoint: String,
}

pub(super) async fn answer(call: &mut Call<'_>, route: &Route, record: RecordId) -> Result<Answer, ApiError> {
    let fields = Fields::read(call.parameters.take("fields").as_deref())?;
    let with_meta = call.parameters.flag("meta")?.unwrap_or_default();
    // Accepted and ignored, because clients may send the parameter of lists here too.
    call.parameters.flag("summary")?;
    let connection = call.parameters.take("connection_id").map(|id| parameters::connection(&id));
    let connection = connection.transpose()?;
    call.parameters.reject_remaining()?;
    let source = call.toolbox.source();
    let address = RecordAddress { connection: connection.clone(), stream: route.stream.clone(), record };
    let key = percent_encoding::utf8_percent_encode(address.record.as_str(), SEGMENT);
    let endpoint = format!("{}/{key}", call.path);
    let record = source.record(&RecordQuery::new(address)).await?;
    let stream = StreamQuery { stream: route.stream.clone(), connection: record.address.connection.clone() };
    let previews = call.toolbox.previews(stream.clone()).await;
    if let Fields::Paths(paths) = &fields {
        known(call, &stream, std::slice::from_ref(&record), paths).await?;
    }
    let request = RecordRequest { fields, with_meta, connection, endpoint };
    let (limits, estimator, compares) = (call.limits, call.toolbox.protection().estimator, call.compares);
    let cap = PageBudget::cap(&limits);
    let shaped = run_blocking(move || {
        let data = match &request.fields {
            Fields::Paths(paths) => with_id(&record, select_paths(&record, paths, &previews)),
            Fields::All | Fields::Unspecified => record.data.clone(),
        };
        let json = serde_json::to_string(&data).unwrap_or_default();
        // A token is at least one byte, so a short record is below the threshold and needs no estimate.
        let estimated = if json.len() <= limits.threshold && !request.with_meta {
            json.len() / BYTES_PER_TOKEN
        } else {
            estimator.tokens(&json, limits.hard_cap)
        };
        Ok(token_budget(&limits, estimated).map(|budget| {
            let summarizes =
                request.fields == Fields::Unspecified && limits.summarization && budget.summary_mode();
            let original = if compares { count_tokens(&json) } else { 0 };
            let candidate_tokens = match estimator {
                Estimator::O200k => budget.estimated_tokens(),
                Estimator::Chars4 => Estimator::O200k.tokens(&json, limits.hard_cap),
            };
            let view = RecordView { record, request, previews, budget, candidate_tokens, cap };
            let answer = if summarizes { view.summarized() } else { view.full(&data, json) };
            answer.map(|answer| {
                let compared = compares.then(|| (original, count_tokens(&answer.body)));
                with_comparison(answer, compared)
            })
        }))
    });
    shaped.await??.ok_or_else(|| too_large(cap).into())
}

fn too_large(budget: PageBudget) -> RequestError {
    let problem = format!("not even the id of the record fits into the hard cap of {} tokens", budget.tokens);
    RequestError::new(StatusCode::PAYLOAD_TOO_LARGE, "response_too_large", problem)
        .hinting("Raise `hard_cap` for this path in the configuration.")
}

/// Record with everything that determines its representation.
struct RecordView {
    record: Record,
    request: RecordRequest,
    previews: Arc<Previews>,
    budget: TokenBudget,
    /// Tokens of the requested fields without shortening, for telemetry.
    candidate_tokens: usize,
    cap: PageBudget,
}

impl RecordView {
    /// Returns the requested fields, or as much of them as fits under the hard cap.
    fn full(&self, data: &RecordData, json: String) -> Option<Answer> {
        let Self { record, request, previews, cap, .. } = self;
        let (cap, declared) = (*cap, previews.fields(&record.address));
        let body = if request.with_meta {
            self.enveloped("full", data, &[], OmissionDetail::Counted)?
        } else {
            json
        };
        let shaping = Shaping { fields: Some((record.data.len(), data.len())), ..self.shaping() };
        if body.len() <= cap.bytes
            && let Ok(tokens) = tokens_within(&body, cap.tokens)
        {
            return Some(Answer::with_shaping(body, Shaping { tokens, candidate_tokens: None, ..shaping }));
        }
        let shaping = Shaping { summarized: true, ..shaping };
        let mut room = cap;
        while request.with_meta && room.tokens > 0 {
            let marked = marks::within(record, data, declared, room)?;
            let body =
                self.enveloped("preview", &marked, &left_out(data, &marked), OmissionDetail::Together)?;
            let counted = tokens_within(&body, cap.tokens);
            if let Ok(tokens) = counted
                && body.len() <= cap.bytes
            {
                return Some(Answer::with_shaping(body, Shaping { tokens, ..shaping }));
            }
            // The size of the envelope is known only after writing it. Each round reduces the room by at least a
            // twentieth, so the loop ends.
            let tokens = counted.err().unwrap_or(cap.tokens);
            room = PageBudget {
                bytes: room.bytes.saturating_mul(cap.bytes) / body.len().max(cap.bytes) * 19 / 20,
                tokens: room.tokens.saturating_mul(cap.tokens) / tokens.max(cap.tokens) * 19 / 20,
            };
        }
        let marked = marks::within(record, data, declared, cap)?;
        Some(Answer::with_shaping(serde_json::to_string(&marked).ok()?, shaping))
    }

    /// Returns a summary of the record with the calls that return the rest.
    fn summarized(&self) -> Option<Answer> {
        let Self { record, previews, budget, cap, .. } = self;
        let share = budget.estimated_tokens() * SUMMARY_SHARE.0 / SUMMARY_SHARE.1;
        let tokens = budget.threshold().min(cap.tokens).min(share.max(MIN_SUMMARY_TOKENS));
        let max_budget = PageBudget { bytes: tokens * BYTES_PER_TOKEN, tokens };
        [OmissionDetail::Each, OmissionDetail::Together, OmissionDetail::Counted]
            .into_iter()
            .find_map(|naming| self.preview_within(max_budget, naming))
            // If the threshold is too small for any summary, the smallest one exceeds it.
            .or_else(|| {
                let (answer, _) = self.preview_in(0, OmissionDetail::Counted, *cap)?.ok()?;
                Some(answer)
            })
            // If the hard cap is too small even for that, as much of the record as fits is returned without an
            // envelope.
            .or_else(|| {
                let marked = marks::within(record, &record.data, previews.fields(&record.address), *cap)?;
                let summarized = marked != record.data;
                let candidate_tokens = summarized.then_some(self.candidate_tokens);
                let shaping = Shaping { summarized, candidate_tokens, ..self.shaping() };
                Some(Answer::with_shaping(serde_json::to_string(&marked).ok()?, shaping))
            })
    }

    /// Returns the largest summary that fits a budget and shows more than the id, if there is more. Returns `None` if
    /// the names of the omitted fields take too much.
    fn preview_within(&self, max_budget: PageBudget, naming: OmissionDetail) -> Option<Answer> {
        let mut room = max_budget.bytes;
        loop {
            match self.preview_in(room, naming, max_budget)? {
                // With the whole budget available, only the id can be shown.
                Ok((answer, shown)) => return (shown > 1 || room == max_budget.bytes).then_some(answer),
                // Omitted fields are named one by one only while that takes at most half of the budget.
                Err(_) if naming == OmissionDetail::Each && room < max_budget.bytes / 2 => return None,
                Err(_) if room == 0 => return None,
                Err((bytes, tokens)) => room = max_budget.less_room(room, bytes, tokens),
            }
        }
    }

    /// Builds a summary of at most `room` bytes. Returns it with the number of fields that it shows, or the bytes and
    /// tokens of the answer if that exceeds the budget.
    fn preview_in(
        &self,
        room: usize,
        naming: OmissionDetail,
        max_budget: PageBudget,
    ) -> Option<Result<(Answer, usize), (usize, usize)>> {
        let Self { record, previews, .. } = self;
        let data = &record.data;
        // The id is always shown, since clients request the record by it.
        let mut shown = if room == 0 {
            let id = only_id(record);
            Preview { left_out: left_out(data, &id), summary: id }
        } else {
            let declared = [&[FieldPath::field("id")], previews.fields(&record.address)].concat();
            preview(data, &declared, room)
        };
        if shown.summary.is_empty() {
            shown.summary = only_id(record);
        }
        let body = self.enveloped("preview", &shown.summary, &shown.left_out, naming)?;
        Some(match tokens_within(&body, max_budget.tokens) {
            Ok(_) if body.len() > max_budget.bytes => Err((body.len(), max_budget.tokens)),
            Ok(tokens) => {
                let fields = Some((data.len(), shown.summary.len()));
                let shaping = Shaping { summarized: true, tokens, fields, ..self.shaping() };
                Ok((Answer::with_shaping(body, shaping), shown.summary.len()))
            }
            Err(tokens) => Err((body.len(), tokens)),
        })
    }

    /// Serializes a part of the record in an envelope that says how to get the rest.
    fn enveloped(
        &self,
        kind: &'static str,
        shown: &RecordData,
        left_out: &[OmittedField],
        naming: OmissionDetail,
    ) -> Option<String> {
        let Self { record, request, previews, budget, .. } = self;
        let declared = previews.groups(&record.address);
        let (groups, more_groups) = groups(&record.data, left_out, declared, naming);
        let details = Details {
            id: Handle::mint(&record.address).map(|handle| handle.to_string()),
            groups,
            more_groups,
            ..Details::of_all(request.endpoint.clone(), request.connection.as_ref())
        };
        let meta = RecordMeta {
            kind,
            total_fields: record.data.len(),
            total_fields_deep: deep(&record.data),
            projected_fields: shown.keys().cloned().collect(),
            details_available: details,
            budget: BudgetMeta::from(budget),
        };
        serde_json::to_string(&SummaryResponse { summary: shown, meta }).ok()
    }

    /// Returns the shaping that is recorded, as far as it is known before fitting.
    fn shaping(&self) -> Shaping {
        Shaping {
            items: 1,
            oversized: self.budget.summary_mode(),
            candidate_tokens: Some(self.candidate_tokens),
            ..Shaping::default()
        }
    }
}

/// Counts the fields of a record and of all objects inside it.
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
