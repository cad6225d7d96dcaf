//! How much context an answer may take, for each tool and each path.
//!
//! Pure settings: `config` reads them, tools and routes ask for theirs by name.

use super::budget;

/// How much each endpoint may take.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Protection {
    /// How tokens are estimated.
    pub estimator: Estimator,
    /// For every endpoint.
    pub global: Limits,
    /// For some: a path with all below it, a path that ends with `*` with all that begin so, or `tool:NAME`.
    pub endpoints: Vec<(String, Overrides)>,
}

/// How tokens are estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Estimator {
    /// Counted, as OpenAI's current models do.
    #[default]
    O200k,
    /// A quarter of the characters and a fifth more.
    Chars4,
}

/// What an endpoint may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Tokens above which an answer is summarised.
    pub threshold: usize,
    /// Tokens that no answer exceeds.
    pub hard_cap: usize,
    /// Records on a page when no number is asked.
    pub page_size: usize,
    /// The most records that may be asked.
    pub max_page_size: usize,
    /// Whether what is over the threshold is summarised.
    pub summarization: bool,
    /// Whether lists are given in pages.
    pub pagination: bool,
    /// Whether the hard cap is waived.
    pub exempt: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            threshold: budget::RECORDS_TOKENS,
            hard_cap: budget::DOCUMENT_TOKENS,
            page_size: 50,
            max_page_size: 200,
            summarization: true,
            pagination: true,
            exempt: false,
        }
    }
}

/// What is different for an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Overrides {
    /// See [`Limits::threshold`].
    pub threshold: Option<usize>,
    /// See [`Limits::hard_cap`].
    pub hard_cap: Option<usize>,
    /// See [`Limits::page_size`].
    pub page_size: Option<usize>,
    /// See [`Limits::summarization`].
    pub summarization: Option<bool>,
    /// See [`Limits::pagination`].
    pub pagination: Option<bool>,
    /// See [`Limits::exempt`].
    pub exempt: Option<bool>,
}

impl Protection {
    /// The limits of an endpoint: a path as it was asked, without its query, or `tool:NAME`. Of several entries that
    /// speak of it the longest is the only one that counts.
    #[must_use]
    pub fn limits(&self, endpoint: &str) -> Limits {
        let speaks = |entry: &str| match entry.strip_suffix('*') {
            Some(start) => endpoint.starts_with(start),
            None => endpoint
                .strip_prefix(entry.trim_end_matches('/'))
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
        };
        let longest =
            self.endpoints.iter().filter(|(entry, _)| speaks(entry)).max_by_key(|(entry, _)| entry.len());
        longest.map_or(self.global, |(_, overrides)| self.global.with(*overrides))
    }
}

impl Limits {
    /// The same with what is different.
    #[must_use]
    pub fn with(self, overrides: Overrides) -> Self {
        Self {
            threshold: overrides.threshold.unwrap_or(self.threshold),
            hard_cap: overrides.hard_cap.unwrap_or(self.hard_cap),
            page_size: overrides.page_size.unwrap_or(self.page_size),
            max_page_size: self.max_page_size,
            summarization: overrides.summarization.unwrap_or(self.summarization),
            pagination: overrides.pagination.unwrap_or(self.pagination),
            exempt: overrides.exempt.unwrap_or(self.exempt),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_entry_that_speaks_of_an_endpoint_counts() {
        let entry = |name: &str, threshold| {
            (name.to_owned(), Overrides { threshold: Some(threshold), ..Overrides::default() })
        };
        let protection = Protection {
            endpoints: vec![
                entry("/api/v1/listings", 1),
                entry("/api/v1/listings/5", 2),
                entry("/api/v1/b*", 3),
                entry("tool:fetch", 4),
                entry("/api/v1", 5),
            ],
            ..Protection::default()
        };
        for (endpoint, threshold) in [
            ("/api/v1/listings", 1),
            ("/api/v1/listings/7", 1),
            ("/api/v1/listings/5", 2),
            ("/api/v1/listings/55", 1),
            ("/api/v1/listingsofold", 5),
            ("/api/v1/bookings/1", 3),
            ("tool:fetch", 4),
            ("tool:search", 4_000),
            ("/v1/search", 4_000),
        ] {
            assert_eq!(protection.limits(endpoint).threshold, threshold, "{endpoint}");
        }
    }
}
