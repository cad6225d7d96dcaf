//! The `[rerank]` table: the model that reorders the first hits of a search.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fetchwell_embedding::{RerankEndpoint, RerankSettings, RerankerPlace, ServiceUrl};
use serde::Deserialize;

use super::embedding::{Provider, is_model_name, local_folder};
use super::tree::{Mistake, Node};
use super::values::{SecretPlace, parsed};

/// Name of the table.
const TABLE: &str = "rerank";

/// The reranker of a configuration, with the location of its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredRerank {
    /// Settings of the model.
    pub settings: RerankSettings,
    /// Location of the key of a service.
    pub api_key: Option<SecretPlace>,
    /// Time after which a search has the order found.
    pub timeout: Duration,
}

/// The table as deserialized.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RerankTable {
    provider: Provider,
    #[serde(default, deserialize_with = "parsed")]
    url: Option<ServiceUrl>,
    model: Option<String>,
    api_key: Option<SecretPlace>,
    path: Option<PathBuf>,
    timeout: Duration,
    allow_insecure: bool,
}

impl RerankTable {
    /// Checks the keys of the table against its provider.
    pub(super) fn settings(self, tree: &Node, folder: &Path) -> Result<ConfiguredRerank, Mistake> {
        let timeout = self.timeout;
        let (api_key, place) = match self.provider {
            Provider::Http => self.http(tree, folder)?,
            Provider::Local => (None, self.local(tree, folder)?),
        };
        Ok(ConfiguredRerank { settings: RerankSettings { place }, api_key, timeout })
    }

    fn http(self, tree: &Node, folder: &Path) -> Result<(Option<SecretPlace>, RerankerPlace), Mistake> {
        if self.path.is_some() {
            return Err(tree.mistake(&[TABLE, "path"], "path needs provider = \"local\"".to_owned()));
        }
        let Some(url) = self.url else {
            return Err(tree.mistake(&[TABLE, "provider"], "provider = \"http\" needs a url".to_owned()));
        };
        if self.model.as_ref().is_some_and(|model| !is_model_name(model)) {
            let problem = "model is a name of at most 200 characters".to_owned();
            return Err(tree.mistake(&[TABLE, "model"], problem));
        }
        let endpoint = RerankEndpoint::new(url, self.model.is_some());
        if !endpoint.url().is_confidential() && !self.allow_insecure {
            let problem = format!(
                "over `{}` the key, queries and passages of records are sent unencrypted; use https, or set allow_insecure = true beside it if no one else can read that network",
                endpoint.url()
            );
            return Err(tree.mistake(&[TABLE, "url"], problem));
        }
        let place = RerankerPlace::Http { endpoint, model: self.model };
        Ok((self.api_key.map(|secret| secret.below(folder)), place))
    }

    fn local(self, tree: &Node, folder: &Path) -> Result<RerankerPlace, Mistake> {
        let unused = [
            ("url", self.url.is_some()),
            ("model", self.model.is_some()),
            ("api_key", self.api_key.is_some()),
            ("allow_insecure", self.allow_insecure),
        ];
        let folder = local_folder(tree, TABLE, self.path.map(|path| folder.join(path)), &unused)?;
        Ok(RerankerPlace::Local { folder })
    }
}

#[cfg(test)]
mod tests {
    use super::super::check_text;
    use super::*;

    fn read(text: &str) -> Result<ConfiguredRerank, String> {
        let settings = check_text(&format!("[rerank]\n{text}\n"), Path::new("/etc/fetchwell.toml"));
        settings.map(|settings| settings.rerank.unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn rerankers_are_http_or_local() {
        let http = read(
            "provider = \"http\"\nurl = \"https://api.cohere.com/v2\"\nmodel = \"rerank-v3.5\"\napi_key = \"file:key\"\ntimeout = \"1s\"",
        )
        .unwrap();
        assert_eq!(http.api_key, Some(SecretPlace::File("/etc/key".into())));
        assert_eq!(http.timeout, Duration::from_secs(1));
        assert!(http.settings.disclosure().contains("leave this machine"));
        let local = read("provider = \"local\"\npath = \"models/cross\"").unwrap();
        assert_eq!(local.settings.place, RerankerPlace::Local { folder: "/etc/models/cross".into() });
        assert!(local.settings.disclosure().starts_with("nothing leaves"));
        let tei = read("provider = \"http\"\nurl = \"http://localhost:8080\"").unwrap();
        assert!(tei.settings.disclosure().ends_with("on this machine"));
    }

    #[test]
    fn mistakes_name_the_key_and_no_secret() {
        for (text, expect) in [
            ("", "the key `provider` is missing"),
            ("provider = \"http\"", "2: rerank.provider: provider = \"http\" needs a url"),
            ("provider = \"local\"", "2: rerank.provider: provider = \"local\" needs a path"),
            ("provider = \"local\"\npath = \"a\"\nmodel = \"m\"", "4: rerank.model: model needs"),
            (
                "provider = \"http\"\nurl = \"http://x.example\"",
                "3: rerank.url: over `http://x.example/rerank`",
            ),
            ("provider = \"http\"\nurl = \"https://u:sekret@x\"", "3: rerank.url: the URL has a user"),
            ("provider = \"http\"\nurl = \"https://x\"\nmodel = \" \"", "4: rerank.model: model is"),
            ("provider = \"http\"\nkeys = 1", "3: rerank.keys: unknown key `keys`"),
        ] {
            let problem = read(text).unwrap_err();
            assert!(problem.contains(expect) && !problem.contains("sekret"), "{text}\n{problem}");
        }
    }
}
