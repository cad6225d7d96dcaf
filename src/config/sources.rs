//! The `[[source]]` tables: the sources to serve.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::tree::{Mistake, Node};
use super::values::{CredentialText, Label, SourceTitle, without_user_info};
use super::{CredentialSettings, DEFAULT_CACHE_ROOT, NO_DATABASE, SourcePlace, SourceSettings};
use crate::handle::{SourceName, StreamName};
use crate::source::pdpp::ProviderUrl;

/// A `[[source]]` table as deserialized.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SourceTable {
    name: SourceTitle,
    label: Option<Label>,
    store: Option<PathBuf>,
    read_urls: Option<Vec<PathBuf>>,
    max_lag: Option<Duration>,
    #[serde(default, deserialize_with = "provider_url")]
    url: Option<ProviderUrl>,
    credential: Option<CredentialText>,
    cache_root: Option<PathBuf>,
    allow_insecure: Option<bool>,
    deadline: Duration,
    #[serde(default, deserialize_with = "allowed_streams")]
    streams: Option<Vec<StreamName>>,
}

/// Validates the sources and the uniqueness of their names.
pub(super) fn sources(
    tree: &Node,
    listed: Vec<SourceTable>,
    folder: &Path,
) -> Result<Vec<SourceSettings>, Mistake> {
    let mut places: HashMap<SourceName, usize> = HashMap::new();
    let mut sources = Vec::with_capacity(listed.len());
    for (number, source) in listed.into_iter().enumerate() {
        let number = number.to_string();
        let path = ["source", &number, "name"];
        let wrong = |problem: String| tree.mistake(&path, problem);
        let name = source.name.0.clone();
        if let Some(earlier) = places.insert(name.clone(), tree.line_of(&path).unwrap_or_default()) {
            return Err(wrong(format!(
                "duplicate source name `{name}`, first on line {earlier}; give each source its own name"
            )));
        }
        if let Some(url) = source.url.as_ref().filter(|url| !url.is_confidential())
            && source.allow_insecure != Some(true)
        {
            let problem = format!(
                "over `{url}` the credential and every query are sent unencrypted; use https, or set allow_insecure = true beside it if no one else can read that network"
            );
            return Err(tree.mistake(&["source", &number, "url"], problem));
        }
        sources.push(source.settings(folder).map_err(wrong)?);
    }
    Ok(sources)
}

impl SourceTable {
    fn settings(self, folder: &Path) -> Result<SourceSettings, String> {
        let SourceTitle(name) = self.name;
        let place = match (self.store, self.url) {
            (Some(path), None)
                if self.credential.is_none()
                    && self.cache_root.is_none()
                    && self.allow_insecure.is_none() =>
            {
                SourcePlace::with_replicas(&path, self.read_urls, self.max_lag, folder)
                    .map_err(|problem| format!("source `{name}`: {problem}"))?
            }
            (Some(_), None) => {
                return Err(format!(
                    "source `{name}` is a store; credential, cache_root and allow_insecure need a url"
                ));
            }
            (None, Some(url)) => {
                if self.read_urls.is_some() || self.max_lag.is_some() {
                    return Err(format!("source `{name}`: {NO_DATABASE}"));
                }
                let cache_root = self.cache_root.as_deref().unwrap_or(Path::new(DEFAULT_CACHE_ROOT));
                let credential = match &self.credential {
                    None => CredentialSettings::PdppCache(folder.join(cache_root)),
                    Some(credential) => credential.settings(folder, cache_root)?,
                };
                if self.cache_root.is_some() && !matches!(credential, CredentialSettings::PdppCache(_)) {
                    return Err(format!(
                        "source `{name}` has a cache_root, which needs the credential \"pdpp-cache\"; remove one of them"
                    ));
                }
                SourcePlace::Provider { url, credential }
            }
            (Some(_), Some(_)) | (None, None) => {
                return Err(format!("source `{name}` needs either store or url"));
            }
        };
        Ok(SourceSettings {
            label: self.label.map(|label| label.0),
            deadline: self.deadline,
            streams: self.streams,
            ..SourceSettings::new(name, place)
        })
    }
}

fn provider_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ProviderUrl>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let text = without_user_info(&text).map_err(D::Error::custom)?;
    // The key `allow_insecure` decides about http and is checked later.
    ProviderUrl::parse_insecure(text).map(Some).map_err(D::Error::custom)
}

/// Maximum number of streams in an allow-list.
const MAX_STREAMS: usize = 200;

fn allowed_streams<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<StreamName>>, D::Error> {
    let streams = Vec::<StreamName>::deserialize(deserializer)?;
    match streams.len() {
        0 => Err(D::Error::custom(
            "streams is empty, which hides all streams; name some, or remove the key to show all",
        )),
        1..=MAX_STREAMS => Ok(Some(streams)),
        many => Err(D::Error::custom(format!("streams has {many} names; the limit is {MAX_STREAMS}"))),
    }
}
