//! How much context an answer may take, for each tool and each path.
//!
//! Pure settings: `config` reads them, tools and routes ask for theirs by name.

use super::budget;

/// The most tokens that any limit may name.
const MAX_TOKENS: usize = 1_000_000;

/// The most records on a page, whatever is asked.
const MAX_PAGE: usize = 200;

/// What the names of tools begin with.
const TOOL: &str = "tool:";

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
        let limits = longest.map_or(self.global, |(_, overrides)| self.global.with(*overrides));
        if endpoint.starts_with(TOOL) { limits.of_a_tool() } else { limits }
    }

    /// Whether all of it can be true at once.
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
                let most = budget::DOCUMENT_TOKENS;
                for (limit, tokens) in
                    [(Limit::HardCap, overrides.hard_cap), (Limit::Threshold, overrides.threshold)]
                {
                    if let Some(tokens) = tokens.filter(|tokens| *tokens > most) {
                        let problem =
                            format!("{tokens} is too much: a tool's answers never exceed {most} tokens");
                        return Err(Contradiction {
                            endpoint: Some(endpoint.clone()),
                            limits: vec![limit],
                            problem,
                        });
                    }
                }
                if overrides.exempt == Some(true) {
                    let problem = format!("no tool is exempt: a tool's answers never exceed {most} tokens");
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

/// Limits that cannot all be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// The entry it is of; the whole when `None`.
    pub endpoint: Option<String>,
    /// Those that do not go together, the first to look at first.
    pub limits: Vec<Limit>,
    /// What is wrong, with what would be right.
    pub problem: String,
}

/// A limit by its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// See [`Limits::threshold`].
    Threshold,
    /// See [`Limits::hard_cap`].
    HardCap,
    /// See [`Limits::page_size`].
    PageSize,
    /// See [`Limits::max_page_size`].
    MaxPageSize,
    /// See [`Limits::exempt`].
    Exempt,
}

impl Limits {
    /// What a tool may take: its answers have a bound of their own, whatever else is set.
    fn of_a_tool(self) -> Self {
        let hard_cap = self.hard_cap.min(budget::DOCUMENT_TOKENS);
        Self { hard_cap, threshold: self.threshold.min(hard_cap), exempt: false, ..self }
    }

    /// The same, in which what is inherited gives way to that bound and what was written for the tool does not.
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
            // What was written for the endpoint itself is looked at first.
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

impl Overrides {
    /// Which limits are written here.
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
