//! The `[context_protection]` table: limits of responses, from the file and from environment variables, which take
//! precedence.

use std::collections::HashMap;

use fetchwell_core::fit::{Contradiction, Estimator, Limit, Limits, Overrides, Protection};
use fetchwell_tools::Profile;
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use super::env::{Environment, PROTECTION_VARIABLES};
use super::tree::{Mistake, Node, Schema, key_of};
use super::values::{parse_boolean, shown};

/// Name of the table.
const TABLE: &str = "context_protection";

/// Maximum number of entries in `endpoints`. Every call searches them linearly.
const MAX_ENDPOINTS: usize = 200;

/// Maximum length of an endpoint's name in bytes.
const MAX_NAME_BYTES: usize = 200;

/// The table as deserialized.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProtectionTable {
    output_token_threshold: Option<usize>,
    hard_output_token_cap: Option<usize>,
    default_page_size: Option<usize>,
    max_page_size: Option<usize>,
    enable_summarization: Option<bool>,
    enable_pagination: Option<bool>,
    estimator: Option<EstimatorName>,
    #[serde(default, deserialize_with = "endpoints")]
    endpoints: Vec<(String, EndpointTable)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
enum EstimatorName {
    #[serde(rename = "o200k")]
    O200k,
    #[serde(rename = "chars4")]
    Chars4,
}

/// The overrides for an endpoint, as deserialized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct EndpointTable {
    page_size: Option<usize>,
    threshold: Option<usize>,
    hard_cap: Option<usize>,
    summarization_enabled: Option<bool>,
    pagination_enabled: Option<bool>,
    exempt: Option<bool>,
}

/// The settings of file and environment together, before their consistency is checked.
#[derive(Debug)]
pub(super) struct EffectiveProtection {
    protection: Protection,
    /// Names of the variables that are set, by the key that each overrides.
    variables: HashMap<&'static str, &'static str>,
}

/// The reason to reject the settings.
#[derive(Debug)]
pub(super) enum Refusal {
    /// An environment variable is not valid.
    Variable { name: &'static str, problem: String },
    /// The file is not valid.
    File(Mistake),
}

impl ProtectionTable {
    /// Applies the environment variables to the table.
    pub(super) fn with(
        mut self,
        environment: &Environment,
        schema: &Schema,
    ) -> Result<EffectiveProtection, Refusal> {
        let mut variables = HashMap::new();
        for (name, value) in &environment.protection {
            let Some((_, key)) = PROTECTION_VARIABLES.into_iter().find(|(known, _)| known == name) else {
                continue;
            };
            let on = || {
                let wrong = |problem| invalid(name, format!("{problem}; write true or false"));
                parse_boolean(value).map(Some).map_err(wrong)
            };
            let count = |example: u32| {
                let wrong = |problem| invalid(name, format!("{problem}; write an integer such as {example}"));
                parse_count(schema, key, value).map(Some).map_err(wrong)
            };
            match key {
                "output_token_threshold" => self.output_token_threshold = count(4_000)?,
                "hard_output_token_cap" => self.hard_output_token_cap = count(4_000)?,
                "default_page_size" => self.default_page_size = count(50)?,
                "max_page_size" => self.max_page_size = count(50)?,
                "enable_pagination" => self.enable_pagination = on()?,
                _ => self.enable_summarization = on()?,
            }
            variables.insert(key, *name);
        }
        Ok(EffectiveProtection { protection: self.protection(), variables })
    }

    fn protection(self) -> Protection {
        let default = Limits::default();
        Protection {
            estimator: match self.estimator {
                None | Some(EstimatorName::O200k) => Estimator::O200k,
                Some(EstimatorName::Chars4) => Estimator::Chars4,
            },
            global: Limits {
                threshold: self.output_token_threshold.unwrap_or(default.threshold),
                hard_cap: self.hard_output_token_cap.unwrap_or(default.hard_cap),
                page_size: self.default_page_size.unwrap_or(default.page_size),
                max_page_size: self.max_page_size.unwrap_or(default.max_page_size),
                summarization: self.enable_summarization.unwrap_or(default.summarization),
                pagination: self.enable_pagination.unwrap_or(default.pagination),
                exempt: default.exempt,
            },
            endpoints: self.endpoints.into_iter().map(|(name, table)| (name, table.overrides())).collect(),
        }
    }
}

/// Parses a number for a key of the table.
fn parse_count(schema: &Schema, key: &str, text: &str) -> Result<usize, String> {
    let number =
        text.trim().parse::<i128>().map_err(|_other| format!("`{}` is not an integer", shown(text)))?;
    schema.integer(&format!("{TABLE}.{key}"), number)
}

fn invalid(name: &'static str, problem: String) -> Refusal {
    Refusal::Variable { name, problem }
}

impl EndpointTable {
    fn overrides(self) -> Overrides {
        Overrides {
            threshold: self.threshold,
            hard_cap: self.hard_cap,
            page_size: self.page_size,
            summarization: self.summarization_enabled,
            pagination: self.pagination_enabled,
            exempt: self.exempt,
        }
    }
}

impl EffectiveProtection {
    /// Checks that the settings are consistent. An error names the key in the file, or else the variable.
    pub(super) fn check(self, tree: &Node) -> Result<Protection, Refusal> {
        let Err(contradiction) = self.protection.check() else { return Ok(self.protection) };
        let Contradiction { endpoint, limits, problem } = &contradiction;
        let in_file = limits.iter().find_map(|limit| {
            let own = endpoint.as_deref().and_then(|endpoint| {
                let path = [TABLE, "endpoints", endpoint, endpoint_key(*limit)?];
                tree.line_of(&path).map(|line| (line, key_of(&path)))
            });
            own.or_else(|| {
                let key = global_key(*limit);
                let path = [TABLE, key];
                let written = tree.line_of(&path).filter(|_| !self.variables.contains_key(key));
                written.map(|line| (line, key_of(&path)))
            })
        });
        let wrong = |line, key| {
            let problem = match self.variable(limits) {
                Some(name) => format!("{problem} ({name} is set and overrides the file)"),
                None => problem.clone(),
            };
            Err(Refusal::File(Mistake { line, key, problem }))
        };
        match (in_file, self.variable(limits)) {
            (Some((line, key)), _) => wrong(Some(line), Some(key)),
            (None, Some(name)) => Err(Refusal::Variable { name, problem: problem.clone() }),
            // Every number of a contradiction was set by the user, or else the defaults would contradict each other.
            (None, None) => wrong(tree.line_of(&[TABLE]), Some(TABLE.to_owned())),
        }
    }

    /// Returns the variable that is part of a contradiction, if one is.
    fn variable(&self, limits: &[Limit]) -> Option<&'static str> {
        limits.iter().find_map(|limit| self.variables.get(global_key(*limit)).copied())
    }
}

fn global_key(limit: Limit) -> &'static str {
    match limit {
        Limit::Threshold => "output_token_threshold",
        Limit::HardCap => "hard_output_token_cap",
        Limit::PageSize => "default_page_size",
        Limit::MaxPageSize => "max_page_size",
        Limit::Exempt => "exempt",
    }
}

fn endpoint_key(limit: Limit) -> Option<&'static str> {
    match limit {
        Limit::Threshold => Some("threshold"),
        Limit::HardCap => Some("hard_cap"),
        Limit::PageSize => Some("page_size"),
        Limit::Exempt => Some("exempt"),
        Limit::MaxPageSize => None,
    }
}

/// Deserializes the entries in the order of the file.
fn endpoints<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, EndpointTable)>, D::Error> {
    struct Entries;
    impl<'de> Visitor<'de> for Entries {
        type Value = Vec<(String, EndpointTable)>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a table of endpoints")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Vec::new())
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
            let mut read = Vec::new();
            while let Some(EndpointName(name)) = entries.next_key()? {
                if read.len() == MAX_ENDPOINTS {
                    return Err(A::Error::custom(format!("there are more than {MAX_ENDPOINTS} endpoints")));
                }
                read.push((name, entries.next_value()?));
            }
            Ok(read)
        }
    }
    deserializer.deserialize_any(Entries)
}

/// The name of an endpoint: a path with an optional final `*`, or `tool:` and a tool's name.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct EndpointName(String);

impl TryFrom<String> for EndpointName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        if let Some(tool) = name.strip_prefix("tool:") {
            let tools = Profile::Standard.tools();
            if tools.iter().any(|spec| spec.name == tool) {
                return Ok(Self(name));
            }
            let names: Vec<&str> = tools.iter().map(|spec| spec.name).collect();
            return Err(format!("there is no such tool; there are {}", names.join(", ")));
        }
        if !name.starts_with('/') {
            return Err(
                "an endpoint is a path that begins with `/`, or `tool:` with the name of a tool".to_owned()
            );
        }
        let path = name.strip_suffix('*').unwrap_or(&name);
        if path.contains('*') {
            return Err("`*` is allowed only at the end of an endpoint".to_owned());
        }
        if name.len() > MAX_NAME_BYTES
            || name.contains(|c: char| c.is_control() || c.is_whitespace() || c == '?')
        {
            return Err(format!(
                "an endpoint is a path of at most {MAX_NAME_BYTES} bytes, without spaces and without a query"
            ));
        }
        Ok(Self(name))
    }
}
