//! Pages of a list and the cursors between them.
//!
//! A position keeps the arguments of the call as they were sent, so that `{"cursor": C}` alone continues a list. Arguments
//! that are sent beside a cursor are merged into them, and have to describe the same list. [`begin`] resolves the merged
//! arguments once; the arguments of the first page are resolved again only if they differ.
//! **Invariant:** a position is bound to the sources in which it was found, and to the grant.

use fetchwell_core::hex::hexadecimal;
use fetchwell_core::record::RecordData;
use fetchwell_core::saturate::saturated;
use fetchwell_state::StateError;
use fetchwell_state::cursor::{CursorFault, Kind, NoPosition, Position, PreparedCursor};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::error::ToolError;
use super::toolbox::Toolbox;

/// Paging of a tool.
#[derive(Debug)]
pub struct Paging<Request> {
    /// Kind of its cursors.
    pub kind: Kind,
    /// Required argument, which a cursor supplies.
    pub needed: &'static str,
    /// Parses and validates arguments.
    pub resolve: fn(RecordData) -> Result<Request, ToolError>,
    /// Returns true if two requests describe the same list. The page size may differ.
    pub is_same_list: fn(&Request, &Request) -> bool,
    /// Creates the error for a cursor that is refused.
    pub refused: fn(CursorFault) -> ToolError,
}

/// One page of a list.
#[derive(Debug)]
pub struct Page<Request, Rest> {
    /// Request, with the arguments of the first page where none were sent.
    pub request: Request,
    /// State that the previous page left; `None` for the first page.
    pub rest: Option<Rest>,
    /// State for the cursor of the next page; `None` for a list with a single page.
    pub so_far: Option<PageState>,
}

impl<Request, Rest> Page<Request, Rest> {
    /// Creates the only page of a list.
    pub(crate) fn single(request: Request) -> Self {
        Self { request, rest: None, so_far: None }
    }
}

/// The part of a list up to a page.
#[derive(Debug, Clone)]
pub struct PageState {
    kind: Kind,
    arguments: RecordData,
    /// Number of rows on the pages before.
    offset: u32,
}

/// The end of a page that is not the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Continuation {
    /// Cursor of the next page.
    Cursor(String),
    /// Reason why there is no cursor, which becomes a warning: the page itself is not lost. It is no longer than a
    /// cursor.
    Warning(String),
}

/// A continuation whose position may not be stored yet. It must not be given to a client before it is.
pub(crate) struct PreparedContinuation {
    expected: Continuation,
    /// `None` if the expected continuation is valid already.
    unstored: Option<PreparedCursor>,
}

/// A position as it is saved.
#[derive(Serialize)]
struct SavedPosition<'a, Rest> {
    arguments: &'a RecordData,
    rest: &'a Rest,
}

/// A position as it is loaded.
#[derive(Deserialize)]
struct LoadedPosition<Rest> {
    arguments: RecordData,
    rest: Rest,
}

/// Begins a page: the first one, or the one that the cursor among the arguments names.
pub async fn begin<Request, Rest: DeserializeOwned>(
    toolbox: &Toolbox,
    paging: &Paging<Request>,
    sent: RecordData,
) -> Result<Page<Request, Rest>, ToolError> {
    let Some(cursor) = cursor_in(&sent) else {
        let so_far = PageState { kind: paging.kind, arguments: given(sent.clone()), offset: 0 };
        let request = (paging.resolve)(sent)?;
        return Ok(Page { request, rest: None, so_far: Some(so_far) });
    };
    let loaded = load::<LoadedPosition<Rest>>(toolbox, paging.kind, paging.refused, &cursor).await;
    let (position, LoadedPosition { arguments: first, rest }) = match loaded {
        Ok(loaded) => loaded,
        Err(refused) => return Err(paging.own_error(sent, None).unwrap_or(refused)),
    };
    let mut arguments = first.clone();
    arguments.extend(given(sent.clone()));
    match paging.resolve_next(&arguments, &first) {
        Ok(request) => {
            let so_far = PageState { kind: paging.kind, arguments, offset: position.offset };
            Ok(Page { request, rest: Some(rest), so_far: Some(so_far) })
        }
        Err(mismatched) => Err(paging.own_error(sent, first.get(paging.needed)).unwrap_or(mismatched)),
    }
}

impl<Request> Paging<Request> {
    /// Resolves the merged arguments of a later page, which have to describe the list of the first page.
    fn resolve_next(&self, merged: &RecordData, first: &RecordData) -> Result<Request, ToolError> {
        let mismatched = || (self.refused)(CursorFault::Mismatched);
        let request = (self.resolve)(merged.clone()).map_err(|_together| mismatched())?;
        let is_same = merged == first || (self.is_same_list)(&request, &(self.resolve)(first.clone())?);
        if is_same { Ok(request) } else { Err(mismatched()) }
    }

    /// Returns the error of an argument that is invalid by itself. It comes before any error of the cursor.
    ///
    /// `needed` replaces a required argument that was not sent.
    fn own_error(&self, mut sent: RecordData, needed: Option<&Value>) -> Option<ToolError> {
        if !sent.get(self.needed).is_some_and(is_given) {
            sent.insert(self.needed.to_owned(), needed?.clone());
        }
        (self.resolve)(sent).err()
    }
}

impl PageState {
    /// Prepares the continuation of a page with `shown` rows, so that the page can be fitted while its position is stored.
    pub(crate) async fn prepare_continuation(
        self,
        toolbox: &Toolbox,
        shown: usize,
        rest: &impl Serialize,
    ) -> Result<PreparedContinuation, ToolError> {
        let valid = |expected| PreparedContinuation { expected, unstored: None };
        let prepared = match self.prepare(toolbox, shown, rest).await {
            Ok(prepared) => prepared,
            Err(failed) => return continuation_or_warning(Err(failed)).map(valid),
        };
        match prepared.expected().map(str::to_owned) {
            Some(cursor) => {
                Ok(PreparedContinuation { expected: Continuation::Cursor(cursor), unstored: Some(prepared) })
            }
            None => continuation_or_warning(store_position(toolbox, prepared).await).map(valid),
        }
    }

    /// Returns the continuation of a page with `shown` rows.
    pub(crate) async fn continuation(
        self,
        toolbox: &Toolbox,
        shown: usize,
        rest: &impl Serialize,
    ) -> Result<Continuation, ToolError> {
        continuation_or_warning(self.cursor(toolbox, shown, rest).await)
    }

    /// Returns the cursor of the page after one with `shown` rows.
    ///
    /// # Errors
    ///
    /// [`ToolError::StateUnavailable`] if the position cannot be saved. The error is logged, too.
    pub async fn cursor(
        self,
        toolbox: &Toolbox,
        shown: usize,
        rest: &impl Serialize,
    ) -> Result<String, ToolError> {
        store_position(toolbox, self.prepare(toolbox, shown, rest).await?).await
    }

    async fn prepare(
        self,
        toolbox: &Toolbox,
        shown: usize,
        rest: &impl Serialize,
    ) -> Result<PreparedCursor, ToolError> {
        let text = serde_json::to_string(&SavedPosition { arguments: &self.arguments, rest });
        let text = text.map_err(|error| ToolError::Internal { problem: error.to_string() })?;
        let offset = self.offset.saturating_add(saturated::<u32>(shown));
        unavailable(toolbox.cursors.prepare(self.kind, offset, binding(toolbox), text).await)
    }
}

async fn store_position(toolbox: &Toolbox, prepared: PreparedCursor) -> Result<String, ToolError> {
    unavailable(toolbox.cursors.store(prepared).await)
}

/// Logs the error of a position that cannot be saved.
fn unavailable<Saved>(saved: Result<Saved, StateError>) -> Result<Saved, ToolError> {
    saved.inspect_err(|error| tracing::warn!(%error, "no cursor")).map_err(ToolError::StateUnavailable)
}

/// Returns the continuation with a cursor, or with a warning if its position cannot be saved.
fn continuation_or_warning(cursor: Result<String, ToolError>) -> Result<Continuation, ToolError> {
    match cursor {
        Ok(cursor) => Ok(Continuation::Cursor(cursor)),
        Err(ToolError::StateUnavailable(error)) => Ok(Continuation::Warning(no_cursor(error.kind()))),
        Err(other) => Err(other),
    }
}

impl PreparedContinuation {
    /// Returns the continuation as it will be unless the position cannot be stored or the stored clock is ahead.
    pub(crate) fn expected(&self) -> &Continuation {
        &self.expected
    }

    /// Stores the position. Returns another continuation if the expected one is not valid.
    pub(crate) async fn store(self, toolbox: &Toolbox) -> Result<Option<Continuation>, ToolError> {
        let Some(prepared) = self.unstored else { return Ok(None) };
        let stored = continuation_or_warning(store_position(toolbox, prepared).await)?;
        Ok((stored != self.expected).then_some(stored))
    }
}

fn no_cursor(word: &str) -> String {
    format!("There is more, but no cursor: the cursor store is {word}; see the log.")
}

/// Loads the position of a cursor, with the value that was saved there. Refused if the sources have changed.
pub(crate) async fn load<Saved: DeserializeOwned>(
    toolbox: &Toolbox,
    kind: Kind,
    refused: fn(CursorFault) -> ToolError,
    cursor: &str,
) -> Result<(Position, Saved), ToolError> {
    let position = toolbox.cursors.position(kind, cursor).await.map_err(|error| match error {
        NoPosition::Refused(fault) => refused(fault),
        NoPosition::State(error) => ToolError::StateUnavailable(error),
    })?;
    if let Some(fault) = fault_of_binding(&position.binding, &binding(toolbox)) {
        return Err(refused(fault));
    }
    match serde_json::from_str(&position.text) {
        Ok(saved) => Ok((position, saved)),
        // An earlier version may have saved a position that this one cannot read.
        Err(_unreadable) => Err(refused(CursorFault::Expired)),
    }
}

/// Returns the binding of a position: the sources as they are configured, and the grant if calls have one.
pub(crate) fn binding(toolbox: &Toolbox) -> String {
    let digest = |text: &str| hexadecimal(Sha256::digest(text).iter().take(16));
    let caller = toolbox.caller().map(|caller| digest(&caller)).unwrap_or_default();
    format!("{}:{caller}", digest(&toolbox.source().identity()))
}

/// Returns the reason why a position that was saved with one binding cannot be used under another.
fn fault_of_binding(kept: &str, now: &str) -> Option<CursorFault> {
    let caller = |binding: &str| binding.split_once(':').map(|(_, caller)| caller.to_owned());
    if kept == now {
        return None;
    }
    // Another caller may have other sources, so a different caller is reported first.
    let is_other_caller = caller(kept).is_some_and(|kept| Some(kept) != caller(now));
    Some(if is_other_caller { CursorFault::Mismatched } else { CursorFault::Changed })
}

fn cursor_in(sent: &RecordData) -> Option<String> {
    let cursor = sent.get("cursor")?.as_str()?.trim();
    (!cursor.is_empty()).then(|| cursor.to_owned())
}

/// Removes the cursor and empty arguments. Some clients send every argument that they know, empty if they mean none.
fn given(mut arguments: RecordData) -> RecordData {
    arguments.remove("cursor");
    arguments.retain(|_, value| is_given(value));
    arguments
}

fn is_given(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde_json::json;

    use super::*;

    thread_local! {
        static RESOLVED: Cell<usize> = const { Cell::new(0) };
    }

    /// A list of a `stream`, which is refused if it is `wrong`.
    const PAGING: Paging<(String, u64)> = Paging {
        kind: Kind::Records,
        needed: "stream",
        resolve: |arguments| {
            RESOLVED.set(RESOLVED.get() + 1);
            let stream = arguments.get("stream").and_then(Value::as_str).unwrap_or_default().to_owned();
            let limit = arguments.get("limit").and_then(Value::as_u64).unwrap_or(10);
            if stream == "wrong" {
                return Err(ToolError::Internal { problem: "wrong".to_owned() });
            }
            Ok((stream, limit))
        },
        is_same_list: |(one, _), (other, _)| one == other,
        refused: ToolError::InvalidListCursor,
    };

    fn arguments(value: Value) -> RecordData {
        let Value::Object(arguments) = value else { panic!("{value}") };
        arguments
    }

    #[test]
    fn arguments_are_resolved_once_unless_they_differ_from_those_of_the_first_page() {
        let first = arguments(json!({"stream": "s", "limit": 5}));
        for (merged, expect, resolved) in [
            (json!({"stream": "s", "limit": 5}), Some(5), 1),
            (json!({"limit": 5, "stream": "s"}), Some(5), 1),
            (json!({"stream": "s", "limit": 7}), Some(7), 2),
            (json!({"stream": "t", "limit": 5}), None, 2),
            (json!({"stream": "wrong", "limit": 5}), None, 1),
        ] {
            let before = RESOLVED.get();
            let request = PAGING.resolve_next(&arguments(merged.clone()), &first);
            assert_eq!(RESOLVED.get() - before, resolved, "{merged}");
            assert_eq!(request.ok().map(|(_, limit)| limit), expect, "{merged}");
        }
    }

    #[test]
    fn an_invalid_argument_is_reported_before_the_cursor() {
        let stream = Value::from("s");
        let own_error = |sent, needed| PAGING.own_error(arguments(sent), needed).is_some();
        assert!(own_error(json!({"stream": "wrong", "cursor": "c"}), None));
        assert!(!own_error(json!({"stream": " ", "cursor": "c"}), None));
        assert!(!own_error(json!({"cursor": "c"}), Some(&stream)));
        assert!(own_error(json!({"cursor": "c"}), Some(&"wrong".into())));
    }

    #[test]
    fn a_warning_is_no_longer_than_a_cursor() {
        for word in ["of another version", "without random bytes"] {
            assert!(no_cursor(word).len() <= fetchwell_state::cursor::MAX_CURSOR_CHARS, "{word}");
        }
    }

    #[test]
    fn a_cursor_of_another_caller_is_mismatched() {
        for (kept, fault) in [
            ("s1:c1", None),
            ("s1:c2", Some(CursorFault::Mismatched)),
            ("s2:c2", Some(CursorFault::Mismatched)),
            ("s1:", Some(CursorFault::Mismatched)),
            ("s2:c1", Some(CursorFault::Changed)),
            // Binding of an earlier version.
            ("s1", Some(CursorFault::Changed)),
        ] {
            assert_eq!(fault_of_binding(kept, "s1:c1"), fault, "{kept}");
        }
    }

    #[test]
    fn empty_arguments_are_removed() {
        let sent = json!({"query": "x", "connection_id": " ", "streams": [], "filter": {}, "mode": null,
            "limit": 0, "flag": false, "cursor": "c"});
        assert_eq!(Value::Object(given(arguments(sent))), json!({"query": "x", "limit": 0, "flag": false}));
    }
}
