//! The `[context_protection]` table: limits of responses, from the file and from environment variables, which take
//! precedence.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use super::env::{Environment, PROTECTION_VARIABLES};
use super::error::ConfigError;
use super::tree::{Mistake, Node, key_of};
use super::values::{Count, Records, Tokens, Unit, parse_boolean};
use crate::fit::{Contradiction, Estimator, Limit, Limits, Overrides, Protection};
use crate::tools::Profile;

/// Name of the table.
const TABLE: &str = "context_protection";

/// Maximum number of entries in `endpoints`. Every call searches them linearly.
const MAX_ENDPOINTS: usize = 200;

/// Maximum length of an endpoint's name in bytes.
const MAX_NAME_BYTES: usize = 200;

/// The table as deserialized.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProtectionTable {
    output_token_threshold: Option<Count<Tokens>>,
    hard_output_token_cap: Option<Count<Tokens>>,
    default_page_size: Option<Count<Records>>,
    max_page_size: Option<Count<Records>>,
    enable_summarization: Option<bool>,
    enable_pagination: Option<bool>,
    estimator: Option<EstimatorName>,
    #[serde(default, deserialize_with = "endpoints")]
    endpoints: Vec<(String, EndpointTable)>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
enum EstimatorName {
    #[serde(rename = "o200k")]
    O200k,
    #[serde(rename = "chars4")]
    Chars4,
}

/// The overrides for an endpoint, as deserialized.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct EndpointTable {
    page_size: Option<Count<Records>>,
    threshold: Option<Count<Tokens>>,
    hard_cap: Option<Count<Tokens>>,
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

impl ProtectionTable {
    /// Applies the environment variables to the table.
    pub(super) fn with(mut self, environment: &Environment) -> Result<EffectiveProtection, ConfigError> {
        let mut variables = HashMap::new();
        for (name, value) in &environment.protection {
            let Some((_, key)) = PROTECTION_VARIABLES.into_iter().find(|(known, _)| known == name) else {
                continue;
            };
            let on = || {
                let wrong = |problem| invalid(name, format!("{problem}; write true or false"));
                parse_boolean(value).map(Some).map_err(wrong)
            };
            match key {
                "output_token_threshold" => self.output_token_threshold = count(name, value)?,
                "hard_output_token_cap" => self.hard_output_token_cap = count(name, value)?,
                "default_page_size" => self.default_page_size = count(name, value)?,
                "max_page_size" => self.max_page_size = count(name, value)?,
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
                threshold: self.output_token_threshold.map_or(default.threshold, Count::size),
                hard_cap: self.hard_output_token_cap.map_or(default.hard_cap, Count::size),
                page_size: self.default_page_size.map_or(default.page_size, Count::size),
                max_page_size: self.max_page_size.map_or(default.max_page_size, Count::size),
                summarization: self.enable_summarization.unwrap_or(default.summarization),
                pagination: self.enable_pagination.unwrap_or(default.pagination),
                exempt: default.exempt,
            },
            endpoints: self.endpoints.into_iter().map(|(name, table)| (name, table.overrides())).collect(),
        }
    }
}

/// Parses a number from an environment variable.
fn count<Of: Unit>(name: &'static str, value: &str) -> Result<Option<Count<Of>>, ConfigError> {
    let wrong = |problem| invalid(name, format!("{problem}; write an integer such as {}", Of::EXAMPLE));
    value.parse().map(Some).map_err(wrong)
}

fn invalid(name: &'static str, problem: String) -> ConfigError {
    ConfigError::Variable { name, problem }
}

impl EndpointTable {
    fn overrides(self) -> Overrides {
        Overrides {
            threshold: self.threshold.map(Count::size),
            hard_cap: self.hard_cap.map(Count::size),
            page_size: self.page_size.map(Count::size),
            summarization: self.summarization_enabled,
            pagination: self.pagination_enabled,
            exempt: self.exempt,
        }
    }
}

impl EffectiveProtection {
    /// Checks that the settings are consistent. An error names the key in the file, or else the variable.
    pub(super) fn check(self, tree: &Node, path: &Path) -> Result<Protection, ConfigError> {
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
            let mistake = Mistake { line, key, problem };
            Err(ConfigError::Invalid { path: path.to_owned(), mistake })
        };
        match (in_file, self.variable(limits)) {
            (Some((line, key)), _) => wrong(Some(line), Some(key)),
            (None, Some(name)) => Err(ConfigError::Variable { name, problem: problem.clone() }),
            // Every number of a contradiction was set by the user, or else the defaults would contradict each other.
            (None, None) => wrong(tree.line_of(&[TABLE]), Some(TABLE.to_owned())),
        }
    }

    /// Checks the settings of the environment, without a file.
    pub(super) fn check_without_file(self) -> Result<Protection, ConfigError> {
        let Err(Contradiction { limits, problem, .. }) = self.protection.check() else {
            return Ok(self.protection);
        };
        let name = self.variable(&limits).unwrap_or("MCP_OUTPUT_TOKEN_THRESHOLD");
        Err(ConfigError::Variable { name, problem })
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
