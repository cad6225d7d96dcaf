//! What a record server's refusal means for the question that was put.
//!
//! Reference servers take no `filter`, `expand` or `view` of a client token and say so with a parameter's name;
//! that is not a mistake in the call but a thing this server does not do, and the hint says what to do instead.
//! Every other refusal passes through with its own code.

use crate::source::{QueryFault, Refusal, SourceError};

/// A refused `filter`, `expand` or `view`, in words that lead on; anything else as it is.
pub(super) fn of_question(error: SourceError) -> SourceError {
    let SourceError::Refused(refusal) = error else { return error };
    let (fault, hint) = match refused_argument(&refusal) {
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
        _ => return SourceError::Refused(refusal),
    };
    SourceError::CorrectQuery { fault, problem: refusal.message, hint: hint.to_owned() }
}

/// Which of the three arguments an `invalid_request` is about.
fn refused_argument(refusal: &Refusal) -> Option<&'static str> {
    if refusal.status != 400 || refusal.code != "invalid_request" {
        return None;
    }
    let Some(param) = &refusal.param else {
        // The reference server names no parameter when it refuses a view.
        let message = refusal.message.to_ascii_lowercase();
        return message.contains("views are").then_some("view");
    };
    match param.split('[').next() {
        Some("filter") => Some("filter"),
        Some("expand" | "expand_limit") => Some("expand"),
        Some("view") => Some("view"),
        _ => None,
    }
}

/// A refused position of a list: of another list, or too old.
pub(super) fn of_position(error: SourceError) -> SourceError {
    of_token(error, "the cursor", "List again without `cursor`.")
}

/// A refused state to tell changes since.
pub(super) fn of_changes(error: SourceError) -> SourceError {
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
    SourceError::CorrectQuery { fault, problem: format!("{what} {problem}"), hint: hint.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(status: u16, code: &str, param: Option<&str>, message: &str) -> SourceError {
        SourceError::Refused(Box::new(Refusal {
            status,
            code: code.to_owned(),
            message: message.to_owned(),
            param: param.map(str::to_owned),
            choices: Vec::new(),
        }))
    }

    fn fault(error: SourceError) -> Option<QueryFault> {
        match error {
            SourceError::CorrectQuery { fault, problem, hint } => {
                assert!(!problem.is_empty() && !hint.is_empty());
                Some(fault)
            }
            SourceError::Refused(_) => None,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn what_client_tokens_may_not_ask_is_told_apart() {
        for (status, code, param, message, expect) in [
            (400, "invalid_request", Some("filter"), "no", Some(QueryFault::InvalidFilter)),
            (400, "invalid_request", Some("filter[amount]"), "no", Some(QueryFault::InvalidFilter)),
            (400, "invalid_request", Some("expand"), "no", Some(QueryFault::InvalidExpand)),
            (400, "invalid_request", Some("expand_limit[files]"), "no", Some(QueryFault::InvalidExpand)),
            (400, "invalid_request", Some("view"), "no", Some(QueryFault::InvalidView)),
            (400, "invalid_request", None, "views are resolved", Some(QueryFault::InvalidView)),
            (400, "invalid_request", None, "Unsupported query parameter: bogus", None),
            (400, "invalid_filter", Some("filter"), "no such field", None),
            (400, "invalid_request", Some("limit"), "no", None),
            (500, "invalid_request", Some("filter"), "no", None),
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
        let filter = refusal(400, "invalid_request", Some("filter"), "no");
        assert_eq!(fault(of_position(filter)), Some(QueryFault::InvalidFilter));
    }
}
