//! The `[embedding]` table: the model for search by meaning.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fetchwell_embedding::{EmbeddingSettings, Endpoint, ModelPlace};
use serde::Deserialize;

use super::tree::{Mistake, Node};
use super::values::{SecretPlace, parsed};

/// Name of the table.
const TABLE: &str = "embedding";

/// The embedding model of a configuration, with the location of its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredEmbedding {
    /// Settings of the model.
    pub settings: EmbeddingSettings,
    /// Location of the key of a service.
    pub api_key: Option<SecretPlace>,
    /// Maximum number of bytes of the vectors of a store in memory.
    pub vector_memory: usize,
    /// True if new records may be embedded without a command: by `serve` and after an import.
    pub background: bool,
    /// Maximum time in which a search waits for the vector of its query.
    pub query_timeout: Duration,
}

/// The table as deserialized.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EmbeddingTable {
    provider: Provider,
    #[serde(default, deserialize_with = "parsed")]
    url: Option<Endpoint>,
    model: Option<String>,
    api_key: Option<SecretPlace>,
    dimensions: Option<usize>,
    path: Option<PathBuf>,
    pad_to: Option<usize>,
    vector_memory: usize,
    background: Option<bool>,
    query_timeout: Duration,
    allow_insecure: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Provider {
    Http,
    Local,
}

impl EmbeddingTable {
    /// Checks the keys of the table against its provider.
    pub(super) fn settings(self, tree: &Node, folder: &Path) -> Result<ConfiguredEmbedding, Mistake> {
        let Self { pad_to, background, query_timeout, .. } = self;
        let vector_memory = self.vector_memory * 1024 * 1024;
        let (api_key, place) = match self.provider {
            Provider::Http => self.http(tree, folder)?,
            Provider::Local => (None, self.local(tree, folder)?),
        };
        let settings = EmbeddingSettings { place, pad_to };
        // Text leaves the machine, and a service may be paid, only after the user said so.
        let background = background.unwrap_or(settings.is_on_this_machine());
        Ok(ConfiguredEmbedding { settings, api_key, vector_memory, background, query_timeout })
    }

    fn http(self, tree: &Node, folder: &Path) -> Result<(Option<SecretPlace>, ModelPlace), Mistake> {
        if self.path.is_some() {
            return Err(tree.mistake(&[TABLE, "path"], "path needs provider = \"local\"".to_owned()));
        }
        let Some(endpoint) = self.url else {
            return Err(tree.mistake(&[TABLE, "provider"], "provider = \"http\" needs a url".to_owned()));
        };
        if !endpoint.url().is_confidential() && !self.allow_insecure {
            let problem = format!(
                "over `{}` the key and the text of records are sent unencrypted; use https, or set allow_insecure = true beside it if no one else can read that network",
                endpoint.url()
            );
            return Err(tree.mistake(&[TABLE, "url"], problem));
        }
        let Some(model) = self.model.filter(|model| is_model_name(model)) else {
            let problem = "provider = \"http\" needs a model: its name of at most 200 characters".to_owned();
            return Err(tree.mistake(&[TABLE, "model"], problem));
        };
        let Some(dimensions) = self.dimensions else {
            let problem =
                "provider = \"http\" needs dimensions: the length of the model's vectors".to_owned();
            return Err(tree.mistake(&[TABLE, "dimensions"], problem));
        };
        if let Some(pad_to) = self.pad_to.filter(|pad_to| *pad_to < dimensions) {
            let problem = format!("pad_to is {pad_to}, less than the {dimensions} dimensions");
            return Err(tree.mistake(&[TABLE, "pad_to"], problem));
        }
        Ok((
            self.api_key.map(|secret| secret.below(folder)),
            ModelPlace::Http { endpoint, model, dimensions },
        ))
    }

    fn local(self, tree: &Node, folder: &Path) -> Result<ModelPlace, Mistake> {
        let unused = [
            ("url", self.url.is_some()),
            ("model", self.model.is_some()),
            ("api_key", self.api_key.is_some()),
            ("dimensions", self.dimensions.is_some()),
            ("allow_insecure", self.allow_insecure),
        ];
        let folder = local_folder(tree, TABLE, self.path.map(|path| folder.join(path)), &unused)?;
        Ok(ModelPlace::Local { folder })
    }
}

/// Returns the folder of a local model. Refuses the keys that only a service has, each with whether it is set.
pub(super) fn local_folder(
    tree: &Node,
    table: &str,
    folder: Option<PathBuf>,
    service_keys: &[(&str, bool)],
) -> Result<PathBuf, Mistake> {
    if let Some((key, _)) = service_keys.iter().find(|(_, is_set)| *is_set) {
        return Err(tree.mistake(&[table, key], format!("{key} needs provider = \"http\"")));
    }
    folder.ok_or_else(|| tree.mistake(&[table, "provider"], "provider = \"local\" needs a path".to_owned()))
}

/// Returns true for a name that can be part of a request and of a message.
pub(super) fn is_model_name(name: &str) -> bool {
    !name.trim().is_empty() && name.chars().count() <= 200 && !name.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::super::check_text;
    use super::*;

    fn read(text: &str) -> Result<ConfiguredEmbedding, String> {
        let settings = check_text(&format!("[embedding]\n{text}\n"), Path::new("/etc/fetchwell.toml"));
        settings.map(|settings| settings.embedding.unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn models_are_http_or_local() {
        let http = read(
            "provider = \"http\"\nurl = \"https://api.openai.com/v1\"\nmodel = \"text-embedding-3-small\"\napi_key = \"file:key\"\ndimensions = 1536",
        )
        .unwrap();
        assert_eq!(http.api_key, Some(SecretPlace::File("/etc/key".into())));
        assert_eq!(http.vector_memory, 256 * 1024 * 1024);
        assert!(!http.background);
        assert!(http.settings.disclosure().contains("leaves this machine"), "{}", http.settings.disclosure());
        let local = read("provider = \"local\"\npath = \"models/minilm\"\npad_to = 1024\nvector_memory = 64")
            .unwrap();
        assert_eq!(local.settings.place, ModelPlace::Local { folder: "/etc/models/minilm".into() });
        assert_eq!((local.settings.pad_to, local.vector_memory), (Some(1024), 64 * 1024 * 1024));
        assert!(local.background);
        assert_eq!(local.query_timeout, Duration::from_secs(3));
        let set = read("provider = \"local\"\npath = \"a\"\nbackground = false\nquery_timeout = \"500ms\"")
            .unwrap();
        assert_eq!((set.background, set.query_timeout), (false, Duration::from_millis(500)));
        for (url, expect) in [("http://localhost:11434", true), ("https://api.openai.com/v1", false)] {
            let text = format!("provider = \"http\"\nurl = \"{url}\"\nmodel = \"m\"\ndimensions = 8\n");
            assert_eq!(read(&text).unwrap().background, expect, "{url}");
            assert!(read(&format!("{text}background = true")).unwrap().background);
        }
        assert!(local.settings.disclosure().starts_with("nothing leaves this machine"));
    }

    #[test]
    fn mistakes_name_the_key_and_no_secret() {
        let http = "provider = \"http\"\nurl = \"https://x.example\"\n";
        for (text, expect) in [
            (String::new(), "the key `provider` is missing"),
            ("provider = \"x\"".to_owned(), "2: embedding.provider: "),
            ("provider = \"http\"".to_owned(), "2: embedding.provider: provider = \"http\" needs a url"),
            ("provider = \"local\"".to_owned(), "2: embedding.provider: provider = \"local\" needs a path"),
            (
                "provider = \"local\"\npath = \"a\"\nmodel = \"m\"".to_owned(),
                "4: embedding.model: model needs",
            ),
            (format!("{http}path = \"a\""), "4: embedding.path: path needs"),
            (http.to_owned(), "embedding.model: provider = \"http\" needs a model"),
            (format!("{http}model = \"m\""), "embedding.dimensions: provider = \"http\" needs dimensions"),
            (
                format!("{http}model = \"m\"\ndimensions = 0"),
                "5: embedding.dimensions: 0 is not between 1 and 8192",
            ),
            (
                format!("{http}model = \"m\"\ndimensions = 9\npad_to = 8"),
                "6: embedding.pad_to: pad_to is 8, less",
            ),
            (format!("{http}api_key = \"sekret\""), "4: embedding.api_key: the secret must be"),
            (
                "provider = \"http\"\nurl = \"http://x.example\"".to_owned(),
                "3: embedding.url: over `http://x.example",
            ),
            (
                "provider = \"http\"\nurl = \"https://u:sekret@x\"".to_owned(),
                "3: embedding.url: the URL has a user",
            ),
            (format!("{http}keys = 1"), "4: embedding.keys: unknown key `keys`"),
        ] {
            let problem = read(&text).unwrap_err();
            assert!(problem.contains(expect) && !problem.contains("sekret"), "{text}\n{problem}");
        }
    }
}
