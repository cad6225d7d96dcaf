//! Mappings of known servers, as data files. Each is of a server that the tests run.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::mapping::{FetchMapping, Mapping, SearchMapping};

/// Mapping of a known server.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// Name that the server gives itself in `serverInfo`, by which it is recognized.
    pub server_name: String,
    /// Name by which this program has to introduce itself, if the server asks for one.
    pub client_name: Option<String>,
    /// Name of the stream.
    stream: Option<String>,
    /// The tool that searches.
    search: Option<SearchMapping>,
    /// The tool that fetches.
    fetch: Option<FetchMapping>,
}

impl Preset {
    /// Returns the mapping.
    #[must_use]
    pub fn mapping(&self) -> Mapping {
        let Self { search, fetch, stream, .. } = self.clone();
        Mapping { search, fetch, stream }
    }
}

/// Files of the presets, by name.
const FILES: &[(&str, &str)] = &[("basic-memory", include_str!("../presets/basic-memory.toml"))];

static PRESETS: LazyLock<Vec<(&'static str, Preset)>> = LazyLock::new(|| {
    let read = |(name, text): &(&'static str, &str)| Some((*name, toml::from_str(text).ok()?));
    FILES.iter().filter_map(read).collect()
});

/// Returns the preset of a name.
#[must_use]
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|(known, _)| *known == name).map(|(_, preset)| preset)
}

/// Returns the names of all presets.
#[must_use]
pub fn presets() -> Vec<&'static str> {
    PRESETS.iter().map(|(name, _)| *name).collect()
}

/// Returns the name of the preset of a server, by the name that it gives itself.
pub(crate) fn recognized(server: &str) -> Option<&'static str> {
    let is_it = |preset: &Preset| preset.server_name.eq_ignore_ascii_case(server);
    PRESETS.iter().find(|(_, preset)| is_it(preset)).map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_are_read() {
        assert_eq!(presets().len(), FILES.len());
        for (name, text) in FILES {
            toml::from_str::<Preset>(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}
