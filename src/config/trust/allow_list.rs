//! The keys that a configuration file may have although it was found, not named.
//!
//! A folder can come from anywhere, and clients start programs in it. So a file found there may set names, paths of
//! stores, limits, and record servers that are requested over `https` with the credential of `pdpp connect`. The
//! check uses the tree of the file, not the settings: a key that is added to the settings is restricted until the table
//! of keys allows it.

use std::path::Path;

use fetchwell_pdpp::ProviderUrl;
use fetchwell_source::is_database_url;

use crate::config::keys::{FoundFileRule, KEYS, parse};
use crate::config::tree::{Leaf, Mistake};

/// A key that a file may have only if it is named or trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestrictedKey {
    /// Line of the key, from 1.
    pub line: usize,
    /// Full key, such as `source[0].credential`.
    pub key: String,
    /// Value of the key, escaped for a terminal.
    pub value: String,
    /// Action that the key causes, if its name does not say it.
    pub effect: Option<&'static str>,
}

/// Returns the keys in a file's text that require trust, in the order of the file.
///
/// # Errors
///
/// The text cannot be parsed.
pub fn restricted_keys(text: &str, path: &Path) -> Result<Vec<RestrictedKey>, Mistake> {
    let (tree, _) = parse(text, path)?;
    let restricted = tree.leaves().into_iter().filter(|leaf| !is_allowed(leaf));
    Ok(restricted
        .map(|leaf| RestrictedKey {
            line: leaf.line,
            key: leaf.key(),
            effect: effect(&leaf),
            value: leaf.shown,
        })
        .collect())
}

fn is_allowed(leaf: &Leaf) -> bool {
    KEYS.iter().any(|key| key.found.allows(leaf) && leaf.fits(key.name))
}

impl FoundFileRule {
    fn allows(self, leaf: &Leaf) -> bool {
        let Some(text) = leaf.text.as_deref() else { return matches!(self, Self::Any) };
        match self {
            Self::Any => true,
            Self::Trust | Self::TrustTo(_) => false,
            Self::HttpsUrl(_) => text.parse().is_ok_and(|url: ProviderUrl| url.is_https()),
            Self::PdppCache => text == "pdpp-cache",
            // Windows connects and signs in to the machine that a path with two slashes names.
            Self::LocalPath(_) => {
                let slashes = text.trim_start().chars().take_while(|c| matches!(c, '/' | '\\')).count();
                slashes < 2 && !is_database_url(text.trim_start())
            }
        }
    }
}

/// Describes the action that a restricted key causes.
fn effect(leaf: &Leaf) -> Option<&'static str> {
    let text = leaf.text.as_deref().unwrap_or_default();
    KEYS.iter().filter(|key| leaf.fits(key.name)).find_map(|key| match key.found {
        FoundFileRule::HttpsUrl(effect)
        | FoundFileRule::LocalPath(effect)
        | FoundFileRule::TrustTo(effect) => Some(effect),
        FoundFileRule::PdppCache => Some(match text.split_once(':') {
            Some(("command", _)) => "runs this command and sends what it prints to the source's url",
            Some(("env", _)) => "sends this environment variable to the source's url",
            Some(("file", _)) => "sends this file to the source's url",
            _ => "sends the tokens of callers to the source's url",
        }),
        FoundFileRule::Any | FoundFileRule::Trust => None,
    })
}
