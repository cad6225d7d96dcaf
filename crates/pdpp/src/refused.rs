//! Conversion of a record server's refusals into errors with a hint.
//!
//! Reference servers do not support `filter`, `expand` or `view` with a client token. That is not a mistake in the
//! call but a limit of the server, and the hint says what to do instead. Hints of servers that have them, such as
//! fetchwell's own, are quoted. Every other refusal passes through with its own code.

use super::wire::is_of_a_position;
use fetchwell_source::{QueryFault, Refusal, SearchMode, SourceError};

/// Converts a refusal of a read. Any other error is returned unchanged.
pub(crate) fn of_question(error: SourceError) -> SourceError {
    let SourceError::Refused(mut refusal) = error else { return error };
    let (fault, advice) = match refused_argument(&refusal) {
        Some("filter") => (
            QueryFault::InvalidFilter,
            "This record server takes no filter for client tokens; leave `filter` out and narrow with search or fields.",
        ),
        Some("expand") => (
            QueryFault::InvalidExpand,
            "This record server expands nothing for client tokens; leave `expand` and `expand_limit` out and read the related stream.",
        ),
        Some("view") => (
            QueryFault::InvalidView,
            "This record server takes no view for client tokens; leave `view` out and name the fields in `fields`.",
        ),
        _ => {
            // The server's own hint is quoted.
            refusal.fault = refusal.hint.as_ref().and_then(|_| fault_of(&refusal.code));
            return SourceError::Refused(refusal);
        }
    };
    fault.code().clone_into(&mut refusal.code);
    refusal.fault = Some(fault);
    refusal.advice = Some(advice);
    SourceError::Refused(refusal)
}

/// Returns the fault of a code that a changed query can correct.
fn fault_of(code: &str) -> Option<QueryFault> {
    [
        QueryFault::UnknownStream,
        QueryFault::UnknownField,
        QueryFault::InvalidFilter,
        QueryFault::InvalidSort,
        QueryFault::InvalidExpand,
        QueryFault::InvalidWindow,
        QueryFault::FieldNotFound,
        QueryFault::FieldNotText,
        QueryFault::QueryNotFound,
        QueryFault::InvalidArgument,
        QueryFault::NotSupported,
    ]
    .into_iter()
    .find(|fault| fault.code() == code)
}

/// Converts a refusal of a search. A server without a route for the mode does not support it.
pub(crate) fn of_search(error: SourceError, mode: SearchMode) -> SourceError {
    let SourceError::Refused(refusal) = error else { return error };
    if is_of_a_position(&refusal) {
        return SourceError::InvalidCursor;
    }
    let word = match mode {
        SearchMode::Auto | SearchMode::Lexical => return of_question(SourceError::Refused(refusal)),
        SearchMode::Semantic => "semantic",
        SearchMode::Hybrid => "hybrid",
    };
    match (refusal.status, refusal.code.as_str()) {
        (_, "semantic_retrieval_unavailable" | "hybrid_retrieval_unavailable")
        | (404, "not_found" | "http_404")
        | (405 | 501, _) => SourceError::InvalidQuery {
            fault: QueryFault::NotSupported,
            problem: format!("this record server has no {word} search"),
            hint: "Leave `mode` out to search by words.".to_owned(),
        },
        _ => of_question(SourceError::Refused(refusal)),
    }
}

/// Returns which of the three arguments a client token may not send, by the reference server's messages. The
/// parameter's name alone may be about a mistake in its value.
fn refused_argument(refusal: &Refusal) -> Option<&'static str> {
    if refusal.status != 400 || refusal.code != "invalid_request" {
        return None;
    }
    let message = refusal.message.to_ascii_lowercase();
    // The reference server names no parameter when it refuses a view.
    if message.contains("views are resolved") {
        return Some("view");
    }
    let param = refusal.param.as_deref().filter(|_| message.contains("not supported for client-token"))?;
    match param.split('[').next() {
        Some("filter") => Some("filter"),
        Some("expand" | "expand_limit") => Some("expand"),
        Some("view") => Some("view"),
        _ => None,
    }
}

/// Converts a refused position of a list: of another list, expired, or of a stream without pagination.
pub(crate) fn of_position(error: SourceError) -> SourceError {
    if let SourceError::Refused(refusal) = &error
        && refusal.status == 500
        && refusal.message.contains("multi-part primary keys")
    {
        return SourceError::InvalidQuery {
            fault: QueryFault::NotSupported,
            problem: "this record server gives only the first page of a stream with keys of several parts"
                .to_owned(),
            hint: "List without `cursor`, with `limit` 100, and with `order` \"asc\" for the other end; or search for the record."
                .to_owned(),
        };
    }
    of_token(error, "the cursor", "List again without `cursor`.")
}

/// Converts a refused change token.
pub(crate) fn of_changes(error: SourceError) -> SourceError {
    of_token(
        error,
        "the token to tell changes since",
        "Start again with `changes_since` set to \"beginning\".",
    )
}

fn of_token(error: SourceError, what: &str, hint: &str) -> SourceError {
    let SourceError::Refused(refusal) = error else { return error };
    let (fault, problem) = match (refusal.status, refusal.code.as_str()) {
        (410, _) | (_, "cursor_expired") => (QueryFault::ExpiredCursor, "is too old for the record server"),
        (_, "invalid_cursor") => (QueryFault::MismatchedCursor, "is not one of this question"),
        _ => return of_question(SourceError::Refused(refusal)),
    };
    SourceError::InvalidQuery { fault, problem: format!("{what} {problem}"), hint: hint.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(status: u16, code: &str, param: Option<&str>, message: &str) -> SourceError {
        SourceError::Refused(Box::new(Refusal {
            status,
            code: code.to_owned(),
            message: message.to_owned(),
            hint: None,
            param: param.map(str::to_owned),
            choices: Vec::new(),
            fault: None,
            advice: None,
        }))
    }

    fn fault(error: SourceError) -> Option<QueryFault> {
        match error {
            SourceError::InvalidQuery { fault, problem, hint } => {
                assert!(!problem.is_empty() && !hint.is_empty());
                Some(fault)
            }
            SourceError::Refused(refusal) => refusal.correction().map(|(fault, _)| fault),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn what_client_tokens_may_not_ask_is_told_apart() {
        const NO: &str = "that is not supported for client-token reads in PDPP v0.1";
        for (status, code, param, message, expect) in [
            (400, "invalid_request", Some("filter"), NO, Some(QueryFault::InvalidFilter)),
            (400, "invalid_request", Some("filter[amount]"), NO, Some(QueryFault::InvalidFilter)),
            (400, "invalid_request", Some("expand"), NO, Some(QueryFault::InvalidExpand)),
            (400, "invalid_request", Some("expand_limit[files]"), NO, Some(QueryFault::InvalidExpand)),
            (400, "invalid_request", Some("view"), NO, Some(QueryFault::InvalidView)),
            (400, "invalid_request", None, "views are resolved", Some(QueryFault::InvalidView)),
            (400, "invalid_request", Some("filter"), "filter needs exactly one stream", None),
            (400, "invalid_request", Some("view"), "view and fields are mutually exclusive", None),
            (400, "invalid_request", None, "Unsupported query parameter: bogus", None),
            (400, "invalid_filter", Some("filter"), "no such field", None),
            (400, "invalid_request", Some("limit"), NO, None),
            (500, "invalid_request", Some("filter"), NO, None),
        ] {
            assert_eq!(fault(of_question(refusal(status, code, param, message))), expect, "{code} {param:?}");
        }
    }

    #[test]
    fn positions_are_of_another_list_or_too_old() {
        for (status, code, expect) in [
            (400, "invalid_cursor", Some(QueryFault::MismatchedCursor)),
            (410, "cursor_expired", Some(QueryFault::ExpiredCursor)),
            (410, "http_410", Some(QueryFault::ExpiredCursor)),
            (400, "unknown_field", None),
        ] {
            assert_eq!(fault(of_position(refusal(status, code, None, "no"))), expect);
            assert_eq!(fault(of_changes(refusal(status, code, None, "no"))), expect);
        }
        let compound = refusal(
            500,
            "internal_error",
            None,
            "cursor seek is not implemented for multi-part primary keys",
        );
        assert_eq!(fault(of_position(compound)), Some(QueryFault::NotSupported));
        assert_eq!(fault(of_position(refusal(500, "internal_error", None, "it broke"))), None);
        let filter =
            refusal(400, "invalid_request", Some("filter"), "is not supported for client-token reads");
        assert_eq!(fault(of_position(filter)), Some(QueryFault::InvalidFilter));
    }
}
