//! Query parameters of a request.

use crate::handle::ConnectionId;
use crate::source::{CountMode, Expansion, Filter, Operator, RecordsQuery, Selection};

/// Parameters in the order in which they are sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Params(Vec<(String, String)>);

impl Params {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn pairs(&self) -> &[(String, String)] {
        &self.0
    }

    /// Adds a parameter.
    pub(super) fn and(mut self, name: &str, value: &(impl ToString + ?Sized)) -> Self {
        self.0.push((name.to_owned(), value.to_string()));
        self
    }

    /// Adds a parameter for each value; lists are written by repeating the name.
    pub(super) fn each(self, name: &str, values: impl IntoIterator<Item = impl ToString>) -> Self {
        values.into_iter().fold(self, |params, value| params.and(name, &value))
    }

    /// Adds the connection, if there is one.
    pub(super) fn connection(self, connection: Option<&ConnectionId>) -> Self {
        self.each("connection_id", connection)
    }

    /// Adds a filter: `filter[from]=ann`, `filter[amount][gte]=10`.
    pub(super) fn filter(self, filter: &Filter) -> Self {
        filter.0.iter().fold(self, |params, condition| {
            let name = match condition.operator {
                Operator::Equal => format!("filter[{}]", condition.field),
                range => format!("filter[{}][{}]", condition.field, range.as_str()),
            };
            params.and(&name, &condition.value)
        })
    }

    /// Adds expansions: `expand=attachments`, `expand_limit[attachments]=2`.
    pub(super) fn expand(self, expand: &[Expansion]) -> Self {
        expand.iter().fold(self, |params, expansion| {
            let limit = format!("expand_limit[{}]", expansion.relation);
            params.and("expand", &expansion.relation).each(&limit, expansion.limit)
        })
    }

    /// Adds the parameters that every kind of list has.
    pub(super) fn list(self, query: &RecordsQuery, selection: &Selection, count: CountMode) -> Self {
        let params = match selection {
            Selection::All => self,
            Selection::Fields(fields) => self.each("fields", fields),
            Selection::View(view) => self.and("view", view),
        };
        let count = match count {
            CountMode::None => None,
            CountMode::Estimated => Some("estimated"),
            CountMode::Exact => Some("exact"),
        };
        params.filter(&query.filter).expand(&query.expand).each("count", count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(params: &Params, expect: &str) {
        let written: Vec<String> =
            params.pairs().iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(written.join("&"), expect);
    }

    #[test]
    fn filters_and_expansions_are_written_with_brackets() {
        let filter: Filter =
            serde_json::from_str(r#"{"from":"a&b","seen":true,"amount":{"gte":1,"lt":2.5}}"#).unwrap();
        check(
            &Params::default().filter(&filter),
            "filter[from]=a&b&filter[seen]=true&filter[amount][gte]=1&filter[amount][lt]=2.5",
        );
        let expansion = |relation: &str, limit| Expansion { relation: relation.to_owned(), limit };
        check(
            &Params::default().expand(&[expansion("files", Some(2)), expansion("author", None)]),
            "expand=files&expand_limit[files]=2&expand=author",
        );
    }

    #[test]
    fn what_is_not_asked_is_not_sent() {
        let none: [&str; 0] = [];
        check(&Params::default().connection(None).filter(&Filter::default()).expand(&[]).each("x", none), "");
        let connection = "cin_work".parse().unwrap();
        check(
            &Params::default().connection(Some(&connection)).each("f", ["a", "b"]),
            "connection_id=cin_work&f=a&f=b",
        );
    }
}
