//! Limits of answers for each tool and each path.
//!
//! Pure settings: `config` reads them, tools and routes look them up by name.

use super::budget;

/// Maximum number of tokens in any limit.
const MAX_TOKENS: usize = 1_000_000;

/// Maximum number of records on a page.
const MAX_PAGE: usize = 200;

/// Prefix of a tool's name among the endpoints.
const TOOL: &str = "tool:";

/// Limits of all endpoints.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Protection {
    /// Method of token estimation.
    pub estimator: Estimator,
    /// Limits of every endpoint.
    pub global: Limits,
    /// Overrides for some endpoints: a path with all paths below it, a prefix that ends with `*`, or `tool:NAME`.
    pub endpoints: Vec<(String, Overrides)>,
}

/// Method of token estimation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Estimator {
    /// Exact count with the encoding of OpenAI's current models.
    #[default]
    O200k,
    /// Characters divided by four, plus a fifth.
    Chars4,
}

/// Limits of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Tokens above which an answer is summarized.
    pub threshold: usize,
    /// Maximum number of tokens of an answer.
    pub hard_cap: usize,
    /// Default number of records on a page.
    pub page_size: usize,
    /// Maximum number of records that can be requested.
    pub max_page_size: usize,
    /// True if answers over the threshold are summarized.
    pub summarization: bool,
    /// True if lists are paginated.
    pub pagination: bool,
    /// True if the hard cap does not apply.
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

/// Limits that differ for an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Overrides {
    /// Override of [`Limits::threshold`], if set.
    pub threshold: Option<usize>,
    /// Override of [`Limits::hard_cap`], if set.
    pub hard_cap: Option<usize>,
    /// Override of [`Limits::page_size`], if set.
    pub page_size: Option<usize>,
    /// Override of [`Limits::summarization`], if set.
    pub summarization: Option<bool>,
    /// Override of [`Limits::pagination`], if set.
    pub pagination: Option<bool>,
    /// Override of [`Limits::exempt`], if set.
    pub exempt: Option<bool>,
}

impl Protection {
    /// Returns the limits of an endpoint: a requested path without its query, or `tool:NAME`. If several entries
    /// match it, only the longest counts.
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
        let limits = longest.map_or(self.global, |(_, overrides)| self.global.with(*overrides));
        if endpoint.starts_with(TOOL) { limits.of_a_tool() } else { limits }
    }

    /// Checks that the limits do not contradict each other.
    ///
    /// # Errors
    ///
    /// The first contradiction, of the whole before those of endpoints.
    pub fn check(&self) -> Result<(), Contradiction> {
        self.global.check(None, &[])?;
        for (endpoint, overrides) in &self.endpoints {
            let limits = self.global.with(*overrides);
            let own = overrides.own();
            if endpoint.starts_with(TOOL) {
                let max_tokens = budget::DOCUMENT_TOKENS;
                for (limit, tokens) in
                    [(Limit::HardCap, overrides.hard_cap), (Limit::Threshold, overrides.threshold)]
                {
                    if let Some(tokens) = tokens.filter(|tokens| *tokens > max_tokens) {
                        let problem = format!(
                            "{tokens} is too much: a tool's answers never exceed {max_tokens} tokens"
                        );
                        return Err(Contradiction {
                            endpoint: Some(endpoint.clone()),
                            limits: vec![limit],
                            problem,
                        });
                    }
                }
                if overrides.exempt == Some(true) {
                    let problem =
                        format!("no tool is exempt: a tool's answers never exceed {max_tokens} tokens");
                    let limits = vec![Limit::Exempt];
                    return Err(Contradiction { endpoint: Some(endpoint.clone()), limits, problem });
                }
                limits.of_a_tool_of(overrides).check(Some(endpoint), &own)?;
            } else {
                limits.check(Some(endpoint), &own)?;
            }
        }
        Ok(())
    }
}

/// Limits that contradict each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// Entry with the contradiction; `None` for the global limits.
    pub endpoint: Option<String>,
    /// Contradicting limits, the most likely cause first.
    pub limits: Vec<Limit>,
    /// Description of the problem with a valid setting.
    pub problem: String,
}

/// Kind of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The limit [`Limits::threshold`].
    Threshold,
    /// The limit [`Limits::hard_cap`].
    HardCap,
    /// The limit [`Limits::page_size`].
    PageSize,
    /// The limit [`Limits::max_page_size`].
    MaxPageSize,
    /// The limit [`Limits::exempt`].
    Exempt,
}

impl Limits {
    /// Applies the bound of a tool's answers, which holds whatever else is set.
    fn of_a_tool(self) -> Self {
        let hard_cap = self.hard_cap.min(budget::DOCUMENT_TOKENS);
        Self { hard_cap, threshold: self.threshold.min(hard_cap), exempt: false, ..self }
    }

    /// Applies the bound of a tool's answers to inherited limits, but not to those that were written for the tool.
    fn of_a_tool_of(self, overrides: &Overrides) -> Self {
        let hard_cap = self.hard_cap.min(budget::DOCUMENT_TOKENS);
        let is_written = overrides.threshold.is_some() || overrides.hard_cap.is_some();
        Self {
            hard_cap,
            threshold: if is_written { self.threshold } else { self.threshold.min(hard_cap) },
            ..self
        }
    }

    fn check(self, endpoint: Option<&str>, own: &[Limit]) -> Result<(), Contradiction> {
        let wrong = |limits: &[Limit], problem: String| {
            // Limits that were written for the endpoint itself come first.
            let mut limits = limits.to_vec();
            limits.sort_by_key(|limit| !own.contains(limit));
            Err(Contradiction { endpoint: endpoint.map(str::to_owned), limits, problem })
        };
        for (limit, tokens) in [(Limit::Threshold, self.threshold), (Limit::HardCap, self.hard_cap)] {
            if tokens == 0 || tokens > MAX_TOKENS {
                return wrong(&[limit], format!("{tokens} is not between 1 and {MAX_TOKENS} tokens"));
            }
        }
        if self.hard_cap < self.threshold {
            let problem = format!(
                "the hard cap, {}, is below the threshold, {}; raise the one or lower the other",
                self.hard_cap, self.threshold
            );
            return wrong(&[Limit::HardCap, Limit::Threshold], problem);
        }
        for (limit, size) in [(Limit::MaxPageSize, self.max_page_size), (Limit::PageSize, self.page_size)] {
            if !(1..=MAX_PAGE).contains(&size) {
                return wrong(&[limit], format!("{size} is not between 1 and {MAX_PAGE} records"));
            }
        }
        if self.page_size > self.max_page_size {
            let problem = format!(
                "the page size, {}, is above the largest, {}; lower the one or raise the other",
                self.page_size, self.max_page_size
            );
            return wrong(&[Limit::PageSize, Limit::MaxPageSize], problem);
        }
        Ok(())
    }

    /// Applies the overrides of a path or stream.
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

impl Overrides {
    /// Returns the kinds of limits that are set here.
    fn own(&self) -> Vec<Limit> {
        [
            (Limit::Threshold, self.threshold),
            (Limit::HardCap, self.hard_cap),
            (Limit::PageSize, self.page_size),
        ]
        .into_iter()
        .filter_map(|(limit, written)| written.map(|_| limit))
        .collect()
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
    #[test]
    fn a_tool_stays_within_its_bound() {
        let global = Limits { threshold: 20_000, hard_cap: 50_000, ..Limits::default() };
        let protection = Protection { global, ..Protection::default() };
        let limits = protection.limits("tool:search");
        assert_eq!((limits.threshold, limits.hard_cap), (12_000, 12_000));
        assert_eq!(protection.limits("/v1/search").hard_cap, 50_000);
        protection.check().unwrap();
    }

    #[test]
    fn what_contradicts_itself_is_named() {
        use Limit::{Exempt, HardCap, MaxPageSize, PageSize, Threshold};
        let none = Overrides::default();
        let limits = Limits::default();
        for (global, endpoint, overrides, expect) in [
            (Limits { threshold: 0, ..limits }, None, none, vec![Threshold]),
            (Limits { hard_cap: 1_000_001, ..limits }, None, none, vec![HardCap]),
            (Limits { threshold: 12_001, ..limits }, None, none, vec![HardCap, Threshold]),
            (Limits { page_size: 0, ..limits }, None, none, vec![PageSize]),
            (Limits { max_page_size: 201, ..limits }, None, none, vec![MaxPageSize]),
            (Limits { max_page_size: 49, ..limits }, None, none, vec![PageSize, MaxPageSize]),
            (limits, Some("/a"), Overrides { threshold: Some(12_001), ..none }, vec![Threshold, HardCap]),
            (limits, Some("/a"), Overrides { hard_cap: Some(3_999), ..none }, vec![HardCap, Threshold]),
            (limits, Some("/a"), Overrides { page_size: Some(201), ..none }, vec![PageSize]),
            (
                Limits { max_page_size: 100, ..limits },
                Some("/a*"),
                Overrides { page_size: Some(101), ..none },
                vec![PageSize, MaxPageSize],
            ),
            (limits, Some("tool:fetch"), Overrides { exempt: Some(true), ..none }, vec![Exempt]),
            (
                Limits { hard_cap: 50_000, ..limits },
                Some("tool:fetch"),
                Overrides { hard_cap: Some(12_001), ..none },
                vec![HardCap],
            ),
            (
                Limits { hard_cap: 50_000, ..limits },
                Some("tool:fetch"),
                Overrides { threshold: Some(12_001), ..none },
                vec![Threshold],
            ),
            (
                limits,
                Some("tool:fetch"),
                Overrides { hard_cap: Some(3_999), ..none },
                vec![HardCap, Threshold],
            ),
        ] {
            let endpoints = endpoint.map(|endpoint| (endpoint.to_owned(), overrides)).into_iter().collect();
            let protection = Protection { global, endpoints, ..Protection::default() };
            let refused = protection.check().unwrap_err();
            assert_eq!(
                (refused.endpoint.as_deref(), refused.limits),
                (endpoint, expect),
                "{}",
                refused.problem
            );
        }
        Protection::default().check().unwrap();
    }
}
