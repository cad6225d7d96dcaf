//! The configuration file for operators, without its secrets.
//!
//! Values are shown by the table of keys, and of a URL only its scheme, host and port. The tree of the file is shown, not
//! the settings: a key that is added to the settings is hidden until it has an entry in the table.

use std::path::Path;

use fetchwell_http::{ConfigurationView, ShownSetting};
use fetchwell_postgres::PostgresUrl;
use fetchwell_state::redis::RedisUrl;
use url::Url;

use super::key::Visibility::{Hidden, Origin, Redis, SecretPlace, Store, Whole};
use super::table::{KEYS, parse};
use crate::config::tree::{Leaf, Mistake};

/// Returns the keys of a file's text in their order, with values that cannot be secrets.
///
/// # Errors
///
/// The text cannot be parsed.
pub fn configuration_view(text: &str, path: &Path) -> Result<ConfigurationView, Mistake> {
    let (tree, _) = parse(text, path)?;
    let settings =
        tree.leaves().into_iter().map(|leaf| ShownSetting { key: leaf.key(), value: shown(&leaf) });
    Ok(ConfigurationView { file: Some(path.display().to_string()), settings: settings.collect() })
}

/// Returns the part of a value that is shown, or `None` if it is hidden.
fn shown(leaf: &Leaf) -> Option<String> {
    let shape = KEYS.iter().find(|key| key.shown != Hidden && leaf.fits(key.name))?.shown;
    match (shape, leaf.text.as_deref()) {
        (Hidden, _) => None,
        (Whole, _) | (_, None) => Some(leaf.shown.clone()),
        (Origin, Some(text)) => origin(text),
        (Store, Some(text)) => match PostgresUrl::in_place_of(Path::new(text)) {
            None => (!text.contains("://")).then(|| leaf.shown.clone()),
            Some(url) => url.ok().map(|url| url.to_string()),
        },
        (Redis, Some(text)) => text.parse::<RedisUrl>().ok().map(|url| url.to_string()),
        (SecretPlace, Some(text)) => match text.split_once(':') {
            None if matches!(text, "pdpp-cache" | "caller") => Some(text.to_owned()),
            Some(("env" | "file", _)) => Some(leaf.shown.clone()),
            Some(("command", _)) => Some("command:\u{2026}".to_owned()),
            _ => None,
        },
    }
}

/// Returns the scheme, host and port of a URL. A user, a path and a query may contain a secret.
fn origin(text: &str) -> Option<String> {
    let text = text.trim();
    let url =
        if text.contains("://") { Url::parse(text) } else { Url::parse(&format!("https://{text}")) }.ok()?;
    let origin = url.origin();
    let rest = if matches!(url.path(), "" | "/") && url.query().is_none() { "" } else { "/\u{2026}" };
    origin.is_tuple().then(|| format!("{}{rest}", origin.ascii_serialization()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::check_text;

    fn view(text: &str) -> ConfigurationView {
        configuration_view(text, Path::new("/etc/fetchwell.toml")).unwrap()
    }

    /// A configuration with every kind of secret that a file can have. Each contains `5ecret`.
    const SECRETS: &str = r#"
        state = "redis://ann:env:5ecret@cache.example:6380/2?prefix=5ecret"
        public_url = "https://records.example"
        [[source]]
        name = "database"
        store = "postgres://ann:5ecret@db.example:6432/mail?sslmode=disable"
        read_urls = ["postgres://ann:5ecret@replica.example/mail?sslmode=disable"]
        [[source]]
        name = "work"
        url = "https://work.example/5ecret/?key=5ecret"
        credential = "command:vault read --token 5ecret"
        [[source]]
        name = "home"
        url = "home.example"
        credential = "env:HOME_TOKEN"
        [telemetry]
        otlp_endpoint = "https://spans.example/5ecret?key=5ecret"
        [embedding]
        provider = "http"
        url = "https://vectors.example/v1/5ecret?key=5ecret"
        model = "small"
        api_key = "file:vectors.key"
        [rerank]
        provider = "http"
        url = "https://rerank.example/5ecret?key=5ecret"
        model = "small"
        api_key = "env:RERANK_KEY"
        [auth]
        issuer = "https://issuer.example/5ecret"
        jwks_url = "https://issuer.example/keys?key=5ecret"
        [auth.introspection]
        url = "https://issuer.example/introspect?key=5ecret"
        client_id = "fetchwell"
        client_secret = "env:INTROSPECTION_SECRET"
        [[auth.token]]
        name = "ci"
        sha256 = "5ec4e75ec4e75ec4e75ec4e75ec4e75ec4e75ec4e75ec4e75ec4e75ec4e75ec4"
        sources = ["home"]
        admin = true
    "#;

    #[test]
    fn secrets_of_every_kind_are_hidden() {
        let view = view(SECRETS);
        let all = format!("{view:?}");
        assert!(!all.contains("5ecret") && !all.contains("5ec4e7") && !all.contains("vault"), "{all}");
        let value =
            |key: &str| view.settings.iter().find(|setting| setting.key == key).unwrap().value.clone();
        for (key, expect) in [
            ("state", Some("redis://cache.example:6380/2")),
            ("source[0].store", Some("postgres://db.example:6432/mail")),
            ("source[0].read_urls[0]", Some("postgres://replica.example:5432/mail")),
            ("source[1].url", Some("https://work.example/\u{2026}")),
            ("source[1].credential", Some("command:\u{2026}")),
            ("source[2].url", Some("https://home.example")),
            ("source[2].credential", Some("\"env:HOME_TOKEN\"")),
            ("embedding.api_key", Some("\"file:vectors.key\"")),
            ("auth.token[0].sha256", None),
            ("auth.token[0].name", Some("\"ci\"")),
            ("auth.token[0].admin", Some("true")),
        ] {
            assert_eq!(value(key).as_deref(), expect, "{key}");
        }
    }

    #[test]
    fn texts_that_are_not_settings_are_hidden() {
        for text in [
            "new = \"5ecret\"\n",
            "[[source]]\ncredential = \"5ecret\"\n",
            "[[source]]\nstore = \"postgresql://ann:5ecret@\"\n",
            "[[source]]\nstore = \"mysql://ann:5ecret@db.example\"\n",
            "[[source]]\nurl = \"https://ann:5ecret@work.example\"\n",
            "state = \"5ecret\"\n",
            "state = \"redis://ann:5ecret@cache.example\"\n",
            "[embedding]\napi_key = \"5ecret\"\n",
            "[embedding.headers]\nauthorization = \"5ecret\"\n",
            "[tls.new]\nkey = \"5ecret\"\n",
        ] {
            let view = view(text);
            assert!(view.settings.len() == 1 && !format!("{view:?}").contains("5ecret"), "{text}{view:?}");
        }
    }

    #[test]
    fn the_example_is_shown_whole() {
        let text = include_str!("../../../config.example.yaml");
        let path = Path::new("config.example.yaml");
        check_text(text, path).unwrap();
        let view = configuration_view(text, path).unwrap();
        let hidden: Vec<&str> = view
            .settings
            .iter()
            .filter(|setting| setting.value.is_none())
            .map(|setting| setting.key.as_str())
            .collect();
        assert_eq!(hidden, [""; 0], "{view:?}");
    }
}
