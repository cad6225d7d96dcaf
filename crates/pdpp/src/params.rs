//! Query parameters of a request.

use fetchwell_core::handle::ConnectionId;
use fetchwell_source::{
    AggregateQuery, Condition, CountMode, Expansion, Filter, Metric, QueryFault, RecordsQuery, Selection,
    SourceError, Test,
};

/// Parameters in the order in which they are sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn pairs(&self) -> &[(String, String)] {
        &self.0
    }

    /// Adds a parameter.
    pub(crate) fn and(mut self, name: &str, value: &(impl ToString + ?Sized)) -> Self {
        self.0.push((name.to_owned(), value.to_string()));
        self
    }

    /// Adds a parameter for each value; lists are written by repeating the name.
    pub(crate) fn each(self, name: &str, values: impl IntoIterator<Item = impl ToString>) -> Self {
        values.into_iter().fold(self, |params, value| params.and(name, &value))
    }

    /// Adds the connection, if there is one.
    pub(crate) fn connection(self, connection: Option<&ConnectionId>) -> Self {
        self.each("connection_id", connection)
    }

    /// Adds a filter: `filter[from]=ann`, `filter[amount][gte]=10`.
    pub(crate) fn filter(self, filter: &Filter) -> Self {
        filter.0.iter().fold(self, |params, Condition { field, test }| match test {
            Test::Equal(value) => params.and(&format!("filter[{field}]"), value),
            Test::Range(operator, value) => {
                params.and(&format!("filter[{field}][{}]", operator.as_str()), value)
            }
            // Refused by `check_filter`.
            Test::In(_) | Test::Contains(_) | Test::Prefix(_) | Test::Exists(_) => params,
        })
    }

    /// Adds expansions: `expand=attachments`, `expand_limit[attachments]=2`.
    pub(crate) fn expand(self, expand: &[Expansion]) -> Self {
        expand.iter().fold(self, |params, expansion| {
            let limit = format!("expand_limit[{}]", expansion.relation);
            params.and("expand", &expansion.relation).each(&limit, expansion.limit)
        })
    }

    /// Adds the parameters that every kind of list has.
    pub(crate) fn list(self, query: &RecordsQuery, selection: &Selection, count: CountMode) -> Self {
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

/// Refuses a filter with an operator that record servers do not have.
pub(crate) fn check_filter(filter: &Filter) -> Result<(), SourceError> {
    let is_known = |test: &Test| matches!(test, Test::Equal(_) | Test::Range(..));
    let Some(Condition { field, test }) = filter.0.iter().find(|condition| !is_known(&condition.test)) else {
        return Ok(());
    };
    Err(SourceError::InvalidQuery {
        fault: QueryFault::InvalidFilter,
        problem: format!("a record server cannot filter `{field}` by `{}`", test.operator()),
        hint: "Filter by one value, or by a range of gte, gt, lte and lt.".to_owned(),
    })
}

/// Refuses a list of records with words, which record servers only search for.
pub(crate) fn check_words(query: &RecordsQuery) -> Result<(), SourceError> {
    if query.words.is_none() {
        return Ok(());
    }
    let stream = &query.stream;
    Err(SourceError::InvalidQuery {
        fault: QueryFault::NotSupported,
        problem: "a record server cannot list records by words".to_owned(),
        hint: format!("Use `search` with `streams` [\"{stream}\"] and `filter`, or list without `q`."),
    })
}

/// Refuses a metric and a grouping that record servers do not have.
pub(crate) fn check_aggregate(query: &AggregateQuery) -> Result<(), SourceError> {
    let (problem, hint) = match (query.metric, &query.second_field) {
        (Metric::Avg, _) => {
            ("a record server has no metric `avg`".to_owned(), "Ask for `sum` and for `count`.")
        }
        (_, Some(field)) => (
            format!("a record server groups by one field, and `{field}` is a second one"),
            "Group by one field, and filter by a value of the other.",
        ),
        _ => return Ok(()),
    };
    Err(SourceError::InvalidQuery { fault: QueryFault::InvalidAggregate, problem, hint: hint.to_owned() })
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
    fn operators_of_stores_are_refused_by_name() {
        let parse = |json: &str| serde_json::from_str::<Filter>(json).unwrap();
        assert!(check_filter(&parse(r#"{"a":1,"b":{"gte":1}}"#)).is_ok());
        let problem = check_filter(&parse(r#"{"a":1,"b":[1,2]}"#)).unwrap_err().to_string();
        assert!(problem.contains("cannot filter `b` by `in`"), "{problem}");
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
