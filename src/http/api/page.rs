//! A page of a list as it goes out: the seed's `PaginatedResponse`, its items as wide as all of them fit.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::answer::Answer;
use super::fields::with_id;
use super::meta::{BudgetMeta, DetailParameters, Details, PageMeta};
use crate::fit::{
    Estimator, FieldWidth, FittedRows, Limits, PageBudget, Shaping, Strategy, TokenBudget, count_tokens,
    fit_rows, narrow,
};
use crate::http::v1::ApiError;
use crate::record::{Record, RecordData};
use crate::tools::Previews;

/// A page of a list.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PaginatedResponse {
    pub(super) items: Vec<RecordData>,
    /// Goes on with `cursor`; null at the end.
    pub(super) next_cursor: Option<String>,
    pub(super) meta: PageMeta,
}

/// A page that fits, or how many records would.
#[derive(Debug)]
pub(super) enum Fitted {
    Page(Answer),
    Rows(usize),
}

/// What is fitted, where it holds up nobody else.
pub(super) struct PageWork {
    pub(super) records: Vec<Record>,
    pub(super) response: PaginatedResponse,
    pub(super) previews: Arc<Previews>,
    pub(super) budget: PageBudget,
    pub(super) limits: Limits,
    pub(super) estimator: Estimator,
    pub(super) narrowest: FieldWidth,
    pub(super) is_summary: bool,
    pub(super) endpoint: String,
    pub(super) compares: bool,
}

impl PageWork {
    pub(super) fn fitted(mut self) -> Result<Fitted, ApiError> {
        let unwritable = |_| ApiError::internal();
        let whole: Vec<&RecordData> = self.records.iter().map(|record| &record.data).collect();
        let whole = serde_json::to_string(&whole).map_err(unwritable)?;
        let Limits { threshold, hard_cap, .. } = self.limits;
        let estimated = self.estimator.tokens(&whole, hard_cap);
        let budget = TokenBudget::new(threshold, hard_cap.max(threshold), estimated);
        let budget = budget.map_err(|_unsound| ApiError::internal())?;
        self.response.meta.budget = BudgetMeta::from(&budget);
        // Counted as if it were there, so that it can be.
        self.response.meta.summarized = true;
        self.response.meta.details_available = Some(self.details());
        let beside = serde_json::to_string(&self.response).map_err(unwritable)?.len();
        let (records, previews) = (std::mem::take(&mut self.records), Arc::clone(&self.previews));
        let item = |row: usize, width: FieldWidth| {
            let record = records.get(row)?;
            let shown = narrow(&record.data, width, previews.of(&record.address)).0;
            // However narrow it is, it can be asked for.
            Some(with_id(record, shown.map(Cow::into_owned).unwrap_or_default()))
        };
        let size = |row: usize, width: FieldWidth| {
            let json = item(row, width).and_then(|item| serde_json::to_string(&item).ok());
            json.map_or(0, |json| json.len() + 1)
        };
        let is_summary = self.is_summary;
        let details = self.details();
        let response = &mut self.response;
        let render = |widths: &[FieldWidth]| {
            let summarized = is_summary || widths.iter().any(|width| *width != FieldWidth::Whole);
            response.meta.summarized = summarized;
            response.meta.details_available = summarized.then(|| details.clone());
            response.items = widths.iter().enumerate().filter_map(|(row, width)| item(row, *width)).collect();
            serde_json::to_string(response).map_err(unwritable)
        };
        let fitted = fit_rows(records.len(), self.narrowest, size, self.budget.beside(beside), render)?;
        match fitted {
            FittedRows::Only(rows) => Ok(Fitted::Rows(rows)),
            FittedRows::All { json, widths, tokens } => {
                let summarized = is_summary || widths.iter().any(|width| *width != FieldWidth::Whole);
                let shaping = Shaping {
                    items: widths.len(),
                    strategy: if self.response.meta.has_more { Strategy::Paginated } else { Strategy::Whole },
                    summarized,
                    oversized: budget.summary_mode(),
                    tokens,
                    candidate_tokens: Some(estimated),
                    ..Shaping::default()
                };
                let compared = self.compares.then(|| (count_tokens(&whole), count_tokens(&json)));
                Ok(Fitted::Page(Answer { compared, ..Answer::shaped(json, shaping) }))
            }
        }
    }

    fn details(&self) -> Details {
        Details {
            endpoint: self.endpoint.clone(),
            parameters: DetailParameters { fields: "all".to_owned(), connection_id: None },
            id: None,
            groups: Vec::new(),
            more_groups: 0,
        }
    }
}
