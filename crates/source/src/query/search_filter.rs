//! Filters of search results for a source that takes plain words, such as a record server.
//!
//! A record server gets the plain words of a query, and the connection and streams as parameters. Its hits are filtered here by
//! connection, stream and time. Other operators are listed in [`SearchPage::unapplied`].

use fetchwell_core::record::{Hit, HitId, parse_time, start_of_day};
use jiff::Timestamp;

use super::{SearchOperator, SearchPage, SearchQuery};

/// Returns true if a query has words to send.
pub fn has_words(query: &SearchQuery) -> bool {
    query.text.is_plain() || !query.text.plain_words().is_empty()
}

/// Returns the answer to a query without words, which a record server cannot search for.
pub fn page_without_words(query: &SearchQuery) -> SearchPage {
    let mut unapplied = query.text.operators();
    unapplied.remove(&SearchOperator::Time);
    unapplied.insert(SearchOperator::NoWords);
    SearchPage { unapplied, ..SearchPage::default() }
}

/// Removes hits outside the connection, the streams and the time of a query, and lists the operators that are not applied.
pub fn filter_hits(mut page: SearchPage, query: &SearchQuery) -> SearchPage {
    page.unapplied = query.text.operators();
    page.unapplied.remove(&SearchOperator::Time);
    let before = page.hits.len();
    page.hits.retain(|hit| is_in_place(hit, query));
    if query.text.after.is_some() || query.text.before.is_some() {
        let mut has_undated = false;
        page.hits.retain(|hit| match hit.time.as_deref().and_then(start_of) {
            Some(time) => {
                query.text.after.is_none_or(|after| after <= time)
                    && query.text.before.is_none_or(|before| time < before)
            }
            None => {
                has_undated = true;
                true
            }
        });
        if has_undated {
            page.unapplied.insert(SearchOperator::Time);
        }
    }
    if page.hits.len() < before {
        // The server counts hits that were removed.
        page.count = None;
    }
    page
}

/// Returns true if a hit is in the connection and a stream of a query. A hit without an address is kept: its server names
/// neither.
fn is_in_place(hit: &Hit, query: &SearchQuery) -> bool {
    let HitId::Record(address) = &hit.id else { return true };
    let is_connection = match (&query.connection, &address.connection) {
        (Some(asked), Some(connection)) => asked == connection,
        _ => true,
    };
    is_connection && (query.streams.is_empty() || query.streams.contains(&address.stream))
}

/// Parses a time, or a day as its start in UTC.
fn start_of(time: &str) -> Option<Timestamp> {
    parse_time(time).or_else(|| start_of_day(time.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Count, SearchText};
    use fetchwell_core::handle::Handle;

    fn hit(id: &str, time: Option<&str>) -> Hit {
        let id = HitId::Record(id.parse::<Handle>().unwrap().address().clone());
        Hit { time: time.map(str::to_owned), ..Hit::new(id, String::new()) }
    }

    #[track_caller]
    fn check(query: &SearchQuery, expect: &[&str], unapplied: &[SearchOperator]) {
        let hits = vec![
            hit("c/s:before", Some("2026-01-01T00:59:00+01:00")),
            hit("c/s:first", Some("2026-01-01")),
            hit("c/t:within", Some("2026-01-01T23:00:00Z")),
            hit("d/s:after", Some("2026-01-02 10:00")),
            hit("s:undated", None),
        ];
        let page = SearchPage { hits, count: Some(Count::exact(5)), ..SearchPage::default() };
        let page = filter_hits(page, query);
        let keys = page.hits.iter().map(|hit| match &hit.id {
            HitId::Record(address) => address.record.as_str(),
            _ => "",
        });
        assert_eq!(keys.collect::<Vec<_>>(), expect);
        assert_eq!(Vec::from_iter(page.unapplied), unapplied);
        assert_eq!(page.count.is_some(), expect.len() == 5);
    }

    #[test]
    fn hits_are_filtered_by_place_and_by_their_own_time() {
        let all = ["before", "first", "within", "after", "undated"];
        let plain = SearchQuery::new("x", 5);
        check(&plain, &all, &[]);
        let streams = vec!["s".parse().unwrap()];
        check(&SearchQuery { streams, ..plain.clone() }, &["before", "first", "after", "undated"], &[]);
        let connection = "c".parse().ok();
        check(&SearchQuery { connection, ..plain.clone() }, &["before", "first", "within", "undated"], &[]);
        let (after, before) = ("2026-01-01T00:00:00Z".parse().ok(), "2026-01-02T00:00:00Z".parse().ok());
        let text = SearchText { after, before, ..SearchText::plain("x") };
        let query = SearchQuery { text, ..plain.clone() };
        check(&query, &["first", "within", "undated"], &[SearchOperator::Time]);
        let text = SearchText { phrases: vec!["a b".to_owned()], ..SearchText::plain("x") };
        check(&SearchQuery { text, ..plain }, &all, &[SearchOperator::Phrase]);
    }
}
