//! Pages: how a call goes on from a cursor, and how it gives the next.
//!
//! A position keeps the arguments of the call as they were sent, so that `{"cursor": C}` alone goes on. What is sent
//! beside a cursor has to agree with them. A position is bound to the sources it was found in, and to the grant.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::error::ToolError;
use super::toolbox::Toolbox;
use crate::cursor::{CursorFault, Kind, NoPosition, Position};
use crate::record::RecordData;

/// A tool that gives pages.
#[derive(Debug)]
pub(crate) struct Paging<Request> {
    /// Its cursors.
    pub(crate) kind: Kind,
    /// The argument it cannot do without, which the cursor has too.
    pub(crate) needed: &'static str,
    /// Reads its arguments.
    pub(crate) resolve: fn(RecordData) -> Result<Request, ToolError>,
    /// Whether two requests are about the same list; the size of a page may differ.
    pub(crate) same: fn(&Request, &Request) -> bool,
    /// How it refuses a cursor.
    pub(crate) refused: fn(CursorFault) -> ToolError,
}

/// One page of a tool.
#[derive(Debug)]
pub(crate) struct Page<Request, Rest> {
    /// What to do, with the arguments of the first page where none were sent.
    pub(crate) request: Request,
    /// What the page before left, when there is one.
    pub(crate) rest: Option<Rest>,
    /// What the next page has to know of this one; nothing for a list that has one page.
    pub(crate) so_far: Option<SoFar>,
}

impl<Request, Rest> Page<Request, Rest> {
    /// The only page of a list.
    pub(super) fn only(request: Request) -> Self {
        Self { request, rest: None, so_far: None }
    }
}

/// A list up to a page.
#[derive(Debug, Clone)]
pub(crate) struct SoFar {
    kind: Kind,
    arguments: RecordData,
    /// How many rows came before.
    offset: u32,
}

/// How a page ends that is not the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    /// With the cursor of the next.
    Cursor(String),
    /// Without one, for a reason that is given as a warning: the page itself is not lost. It takes no more of the
    /// answer than a cursor would.
    Warning(String),
}

/// A position as it is kept.
#[derive(Serialize)]
struct Kept<'a, Rest> {
    arguments: &'a RecordData,
    rest: &'a Rest,
}

#[derive(Deserialize)]
struct Found<Rest> {
    arguments: RecordData,
    rest: Rest,
}

/// Begins a page: the first, or the one that the cursor among the arguments is for.
pub(crate) async fn begin<Request, Rest: DeserializeOwned>(
    toolbox: &Toolbox,
    paging: &Paging<Request>,
    sent: RecordData,
) -> Result<Page<Request, Rest>, ToolError> {
    let Some(cursor) = cursor_of(&sent) else {
        let request = (paging.resolve)(sent.clone())?;
        let so_far = SoFar { kind: paging.kind, arguments: given(sent), offset: 0 };
        return Ok(Page { request, rest: None, so_far: Some(so_far) });
    };
    // An argument that is wrong by itself is told before anything is said about the cursor.
    let is_whole = given(sent.clone()).contains_key(paging.needed);
    if is_whole {
        (paging.resolve)(sent.clone())?;
    }
    let (position, found) = kept::<Found<Rest>>(toolbox, paging.kind, paging.refused, &cursor).await?;
    let first = found.arguments;
    if !is_whole {
        let mut alone = sent.clone();
        alone.extend(first.get(paging.needed).map(|needed| (paging.needed.to_owned(), needed.clone())));
        (paging.resolve)(alone)?;
    }
    let mut arguments = first.clone();
    arguments.extend(given(sent));
    let mismatched = || (paging.refused)(CursorFault::Mismatched);
    // What is right by itself and not together belongs to another list.
    let request = (paging.resolve)(arguments.clone()).map_err(|_together| mismatched())?;
    if !(paging.same)(&request, &(paging.resolve)(first)?) {
        return Err(mismatched());
    }
    let so_far = SoFar { kind: paging.kind, arguments, offset: position.offset };
    Ok(Page { request, rest: Some(found.rest), so_far: Some(so_far) })
}

impl SoFar {
    /// Returns how a page of `shown` rows ends, where a warning may take the place of the cursor.
    pub(super) async fn next(
        self,
        toolbox: &Toolbox,
        shown: usize,
        rest: &impl Serialize,
    ) -> Result<Next, ToolError> {
        match self.cursor(toolbox, shown, rest).await {
            Ok(cursor) => Ok(Next::Cursor(cursor)),
            Err(ToolError::MendState(error)) => Ok(Next::Warning(no_cursor(error.word()))),
            Err(other) => Err(other),
        }
    }

    /// Returns the cursor of the page after one of `shown` rows.
    ///
    /// # Errors
    ///
    /// [`ToolError::MendState`] when the position cannot be kept. The log has it, too.
    pub(crate) async fn cursor(
        self,
        toolbox: &Toolbox,
        shown: usize,
        rest: &impl Serialize,
    ) -> Result<String, ToolError> {
        let text = serde_json::to_string(&Kept { arguments: &self.arguments, rest });
        let text = text.map_err(|error| ToolError::Report { problem: error.to_string() })?;
        let offset = self.offset.saturating_add(u32::try_from(shown).unwrap_or(u32::MAX));
        let issued = toolbox.cursors.issue(self.kind, offset, binding(toolbox), text).await;
        issued.inspect_err(|error| tracing::warn!(%error, "no cursor")).map_err(ToolError::MendState)
    }
}

fn no_cursor(word: &str) -> String {
    format!("There is more, but no cursor: the cursor store is {word}; see the log.")
}

/// The position of a cursor of one kind, and what was kept there, when the sources are still those it was found in.
pub(super) async fn kept<What: DeserializeOwned>(
    toolbox: &Toolbox,
    kind: Kind,
    refused: fn(CursorFault) -> ToolError,
    cursor: &str,
) -> Result<(Position, What), ToolError> {
    let position = toolbox.cursors.position(kind, cursor).await.map_err(|error| match error {
        NoPosition::Refused(fault) => refused(fault),
        NoPosition::State(error) => ToolError::MendState(error),
    })?;
    if let Some(fault) = fault_of_binding(&position.binding, &binding(toolbox)) {
        return Err(refused(fault));
    }
    match serde_json::from_str(&position.text) {
        Ok(what) => Ok((position, what)),
        // What an earlier version kept, and this one cannot read, is gone.
        Err(_unreadable) => Err(refused(CursorFault::Expired)),
    }
}

/// What a position is good for: the sources as they are configured, for one caller where callers are told apart.
pub(super) fn binding(toolbox: &Toolbox) -> String {
    let digest = |text: &str| -> String {
        Sha256::digest(text).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    };
    let caller = toolbox.caller().map(|caller| digest(&caller)).unwrap_or_default();
    format!("{}:{caller}", digest(&toolbox.asked_source().identity()))
}

/// Returns why a position that was kept with one binding is of no use under another.
fn fault_of_binding(kept: &str, now: &str) -> Option<CursorFault> {
    let caller = |binding: &str| binding.split_once(':').map(|(_, caller)| caller.to_owned());
    match () {
        () if kept == now => None,
        // Another caller may have other sources, which is not what is wrong.
        () if caller(kept).is_some_and(|kept| Some(kept) != caller(now)) => Some(CursorFault::Mismatched),
        () => Some(CursorFault::Changed),
    }
}

fn cursor_of(sent: &RecordData) -> Option<String> {
    let cursor = sent.get("cursor")?.as_str()?.trim();
    (!cursor.is_empty()).then(|| cursor.to_owned())
}

/// The arguments that say something. Clients that send every argument they know send an empty one for none.
fn given(mut arguments: RecordData) -> RecordData {
    arguments.remove("cursor");
    arguments.retain(|_, value| match value {
        Value::Null => false,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    });
    arguments
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_warning_takes_no_more_than_a_cursor() {
        for word in ["of another version", "without random bytes"] {
            assert!(no_cursor(word).len() <= crate::cursor::MAX_CURSOR_CHARS, "{word}");
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
            // As an earlier version kept it.
            ("s1", Some(CursorFault::Changed)),
        ] {
            assert_eq!(fault_of_binding(kept, "s1:c1"), fault, "{kept}");
        }
    }

    #[test]
    fn what_says_nothing_is_left_out() {
        let sent = json!({"query": "x", "connection_id": " ", "streams": [], "filter": {}, "mode": null,
            "limit": 0, "flag": false, "cursor": "c"});
        let Value::Object(sent) = sent else { panic!() };
        assert_eq!(Value::Object(given(sent)), json!({"query": "x", "limit": 0, "flag": false}));
    }
}
