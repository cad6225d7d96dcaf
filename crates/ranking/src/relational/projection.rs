//! Field selection: reduces records to the fields or the view that a query names.

use fetchwell_core::record::{Record, View};
use fetchwell_source::manifest::kinds::MAX_FIELDS;
use fetchwell_source::{QueryFault, Selection, SourceError};

use super::stream_row::StreamRow;

/// Fields to keep; `None` keeps all.
#[derive(Debug)]
pub(super) struct Projection(Option<Vec<String>>);

impl Projection {
    /// Resolves a selection. Refuses fields that none of the streams has, and views that one of them lacks.
    pub(crate) fn new(selection: &Selection, streams: &[StreamRow]) -> Result<Self, SourceError> {
        match selection {
            Selection::All => Ok(Self(None)),
            Selection::Fields(fields) => {
                // A stream with more fields than are tracked accepts any name.
                let known = |field: &&String| {
                    let has = |stream: &StreamRow| {
                        stream.detail.field(field).is_some() || stream.detail.fields.len() >= MAX_FIELDS
                    };
                    streams.iter().any(has)
                };
                if let (Some(unknown), Some(stream)) =
                    (fields.iter().find(|field| !known(field)), streams.first())
                {
                    return Err(SourceError::UnknownField {
                        stream: stream.detail.name.to_string(),
                        field: unknown.clone(),
                        known: stream.detail.fields.iter().map(|field| field.name.clone()).collect(),
                    });
                }
                Ok(Self(Some(fields.clone())))
            }
            Selection::View(name) => {
                let mut fields = Vec::new();
                for stream in streams {
                    fields.extend(stream.detail.view_fields(name).ok_or_else(|| unknown_view(name, stream))?);
                }
                Ok(Self(Some(fields)))
            }
        }
    }

    pub(crate) fn apply(&self, record: &mut Record) {
        if let Some(fields) = &self.0 {
            record.data.retain(|name, _| fields.contains(name));
        }
    }
}

fn unknown_view(name: &str, stream: &StreamRow) -> SourceError {
    let views: Vec<&str> = stream.detail.views.iter().map(|view: &View| view.name.as_str()).collect();
    let hint = if views.is_empty() {
        "The stream declares no views; name `fields` instead.".to_owned()
    } else {
        format!("Its views are: {}.", views.join(", "))
    };
    let problem = format!("stream `{}` has no view `{name}`", stream.detail.name);
    SourceError::InvalidQuery { fault: QueryFault::InvalidView, problem, hint }
}
