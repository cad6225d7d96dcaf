//! Typed values of the configuration: names, labels, durations, credentials.
//!
//! Error messages never quote a credential, because a token that was written in place of its location must not end up
//! in a log.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use fetchwell_core::handle::SourceName;
use fetchwell_pdpp::CommandLine;
use jiff::fmt::friendly::SpanParser;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use url::Url;

use super::credential::CredentialSettings;
use super::env::OWNER_VARIABLES;

/// Maximum length of a source's name in bytes. Each response from which the source is missing contains it.
const MAX_NAME_BYTES: usize = 64;

/// Maximum length of a label in characters.
const MAX_LABEL_CHARS: usize = 80;

/// Minimum duration. No network request is faster.
const MIN_DURATION: Duration = Duration::from_millis(10);

/// Maximum duration. No client waits for an hour.
const MAX_DURATION: Duration = Duration::from_secs(60 * 60);

/// The name of a source, with a maximum length and no control characters.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct SourceTitle(pub SourceName);

impl FromStr for SourceTitle {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.len() > MAX_NAME_BYTES {
            return Err(format!(
                "the name of a source has {} bytes; the limit is {MAX_NAME_BYTES}",
                text.len()
            ));
        }
        if text.trim() != text || text.chars().any(char::is_control) {
            return Err(
                "the name of a source has control characters, or spaces around it; leave them out".to_owned()
            );
        }
        let name = text.parse::<SourceName>();
        name.map(Self).map_err(|error| format!("`{text}` cannot be the name of a source: {error}"))
    }
}

impl TryFrom<String> for SourceTitle {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// The label of a source, for people.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Label(pub String);

impl FromStr for Label {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let characters = text.chars().count();
        if text.trim().is_empty() {
            return Err("the label is empty; leave it out".to_owned());
        }
        if characters > MAX_LABEL_CHARS {
            return Err(format!("the label has {characters} characters; the limit is {MAX_LABEL_CHARS}"));
        }
        if text.chars().any(char::is_control) {
            return Err("the label has control characters; leave them out".to_owned());
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for Label {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// A duration with its unit: `2s`, `500ms`, `1m 30s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DurationText(pub Duration);

impl FromStr for DurationText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let duration = SpanParser::new().parse_unsigned_duration(text.trim());
        let range = || format!("between {MIN_DURATION:?} and {} minutes", MAX_DURATION.as_secs() / 60);
        let duration = duration.map_err(|_unreadable| {
            let shown = shown(text);
            format!("`{shown}` is not a duration; write one {}, such as \"2s\" or \"500ms\"", range())
        })?;
        if !(MIN_DURATION..=MAX_DURATION).contains(&duration) {
            return Err(format!("`{}` is not {}", shown(text), range()));
        }
        Ok(Self(duration))
    }
}

pub(super) fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(40).collect()
}

/// Parses a boolean from an environment variable.
pub(super) fn parse_boolean(text: &str) -> Result<bool, String> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "on" | "yes" => Ok(true),
        "false" | "0" | "off" | "no" => Ok(false),
        _ => Err(format!("`{}` is not a boolean", shown(text))),
    }
}

/// Returns the URL of a source unchanged if it has no user name or password. They would be dropped silently, and the
/// user would not learn that the password is not used.
///
/// # Errors
///
/// The URL has a user name or a password. The message does not quote it.
pub fn without_user_info(text: &str) -> Result<&str, String> {
    let trimmed = text.trim();
    let url =
        if trimmed.contains("://") { Url::parse(trimmed) } else { Url::parse(&format!("https://{trimmed}")) };
    match url {
        Ok(url) if !url.username().is_empty() || url.password().is_some() => Err(
            "the URL contains a user name or a password, which are never sent; remove them, and set a token as the credential"
                .to_owned(),
        ),
        // A text that is not a URL is rejected by the caller.
        _ => Ok(text),
    }
}

/// The location of a credential as text: `pdpp-cache`, `env:NAME`, `file:PATH`, `command:LINE` or `caller`.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct CredentialText(String);

impl TryFrom<String> for CredentialText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        CredentialSettings::parse(&text, Path::new(""), Path::new("")).map(|_| Self(text))
    }
}

/// Shows nothing, because a command may contain a secret.
impl fmt::Debug for CredentialText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CredentialText")
    }
}

impl CredentialText {
    /// Resolves the location in a file of `folder`, with `cache_root` for the cache.
    pub(super) fn settings(&self, folder: &Path, cache_root: &Path) -> Result<CredentialSettings, String> {
        CredentialSettings::parse(&self.0, folder, cache_root)
    }
}

impl CredentialSettings {
    /// Parses `pdpp-cache`, `env:NAME`, `file:PATH`, `command:LINE` or `caller`. Paths are relative to `folder`,
    /// which is also the working directory of a command.
    ///
    /// # Errors
    ///
    /// The text is none of these. The message does not quote it.
    pub fn parse(text: &str, folder: &Path, cache_root: &Path) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "caller" => Ok(Self::Caller),
            None if text == "pdpp-cache" => Ok(Self::PdppCache(folder.join(cache_root))),
            Some(("env", name)) if OWNER_VARIABLES.contains(&name) => {
                Err(format!("`{name}` is an owner credential; fetchwell takes client credentials only"))
            }
            Some(("env", name)) if is_variable(name) => Ok(Self::Variable(name.to_owned())),
            Some(("env", _)) => Err("`env:` needs the name of a variable, such as \"env:NOTES_TOKEN\"".to_owned()),
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(folder.join(path))),
            Some(("command", line)) if !line.trim().is_empty() => {
                Ok(Self::Command(CommandLine::new(line.trim().to_owned(), folder.to_owned())))
            }
            _ => Err("the credential must be \"pdpp-cache\", \"env:NAME\", \"file:PATH\", \"command:LINE\" or \"caller\"; do not write a token here"
                .to_owned()),
        }
    }

    /// Describes the location. A command is not included, because it may contain a secret.
    #[must_use]
    pub fn shown(&self) -> String {
        match self {
            Self::PdppCache(root) => format!("pdpp-cache in {}", root.display()),
            Self::Variable(name) => format!("env:{name}"),
            Self::File(path) => format!("file:{}", path.display()),
            Self::Command(_) => "command".to_owned(),
            Self::Caller => "caller".to_owned(),
        }
    }
}

/// Returns true for a name of an environment variable: letters, digits and underscores, without a digit first.
#[must_use]
pub fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// A value that is written as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parsed<T>(pub(super) T);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Parsed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(D::Error::custom)
    }
}

/// Deserializes an optional value that is written as text.
pub(super) fn parsed<'de, D: Deserializer<'de>, T: FromStr<Err: fmt::Display>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Parsed::deserialize(deserializer).map(|parsed| Some(parsed.0))
}

/// Reference to a secret: `env:NAME` or `file:PATH`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum SecretPlace {
    /// In an environment variable.
    Variable(String),
    /// In a file.
    File(PathBuf),
}

impl SecretPlace {
    /// Returns the place with a path that is relative to `folder`.
    pub(super) fn below(self, folder: &Path) -> Self {
        match self {
            Self::Variable(name) => Self::Variable(name),
            Self::File(path) => Self::File(folder.join(path)),
        }
    }
}

impl TryFrom<String> for SecretPlace {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        match text.split_once(':') {
            Some(("env", name)) if is_variable(name) => Ok(Self::Variable(name.to_owned())),
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(path.into())),
            // The value may be the secret itself.
            _ => Err("the secret must be \"env:NAME\" or \"file:PATH\"; do not write the secret itself here"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit_and_bounds() {
        for (text, milliseconds) in [
            ("2s", 2_000),
            ("500ms", 500),
            ("1m 30s", 90_000),
            ("1h", 3_600_000),
            ("10 ms", 10),
            ("1.5s", 1_500),
        ] {
            assert_eq!(text.parse(), Ok(DurationText(Duration::from_millis(milliseconds))), "{text}");
        }
        for (text, problem) in [
            ("2", "not a duration"),
            ("", "not a duration"),
            ("soon", "`soon` is not a duration"),
            ("-2s", "not a duration"),
            ("0s", "`0s` is not between 10ms and 60 minutes"),
            ("0", "`0` is not a duration; write one between 10ms and 60 minutes, such as"),
            ("9ms", "between"),
            ("61m", "`61m` is not between"),
            ("9223372036854775807s", "not between"),
            ("99999999999999999999s", "not a duration"),
        ] {
            let refused = text.parse::<DurationText>().unwrap_err();
            assert!(refused.contains(problem), "{refused}");
        }
    }

    #[test]
    fn a_credential_is_a_location_and_never_a_token() {
        let parse = |text: &str| CredentialSettings::parse(text, Path::new("/etc/fw"), Path::new(".pdpp"));
        for (text, expect) in [
            ("pdpp-cache", CredentialSettings::PdppCache("/etc/fw/.pdpp".into())),
            ("env:NOTES_TOKEN", CredentialSettings::Variable("NOTES_TOKEN".to_owned())),
            ("file:secrets/notes", CredentialSettings::File("/etc/fw/secrets/notes".into())),
            ("file:/run/notes", CredentialSettings::File("/run/notes".into())),
            (
                "command: pass show notes",
                CredentialSettings::Command(CommandLine::new("pass show notes".to_owned(), "/etc/fw".into())),
            ),
        ] {
            assert_eq!(parse(text), Ok(expect));
        }
        for (text, problem) in [
            ("", "must be"),
            ("tok_5ecret", "do not write a token here"),
            ("Bearer:tok_5ecret", "must be"),
            ("env:", "name of a variable"),
            ("env:tok-5ecret", "name of a variable"),
            ("env:1A", "name of a variable"),
            ("env:PDPP_OWNER_TOKEN", "owner credential"),
            ("env:PDPP_OWNER_SESSION_COOKIE", "owner credential"),
            ("file:", "must be"),
            ("command: ", "must be"),
        ] {
            let refused = parse(text).unwrap_err();
            assert!(refused.contains(problem) && !refused.contains("5ecret"), "{text}: {refused}");
        }
        let command = parse("command:curl -u ann:5ecret x").unwrap();
        assert!(!format!("{command:?} {}", command.shown()).contains("5ecret"));
    }

    #[test]
    fn a_url_with_a_user_is_rejected() {
        for text in
            ["records.example.com", "https://x.example/@base?a=b@c", "no url at all", "", "x.example:7400"]
        {
            assert_eq!(without_user_info(text), Ok(text));
        }
        for text in [
            "https://ann:5ecret@x.example",
            "ann:5ecret@x.example",
            " https:///ann:5ecret@x.example",
            "https://5ecret@x.example",
            "https://:5ecret@x.example/",
        ] {
            let refused = without_user_info(text).unwrap_err();
            assert!(
                refused.contains("a user name or a password") && !refused.contains("5ecret"),
                "{refused}"
            );
        }
    }

    #[test]
    fn names_and_labels_fit_on_a_line() {
        for name in ["work", "Work mail", "arbeit-ü", "a/b"] {
            assert!(name.parse::<SourceTitle>().is_ok(), "{name}");
        }
        for (name, problem) in [
            ("", "empty"),
            ("..", ".."),
            (" a", "spaces"),
            ("a\nb", "control"),
            (&*"a".repeat(65), "limit is 64"),
        ] {
            let refused = name.parse::<SourceTitle>().unwrap_err();
            assert!(refused.contains(problem), "{refused}");
        }
        assert!("Work: all of it".parse::<Label>().is_ok());
        for (label, problem) in
            [(" ", "empty"), ("a\u{1b}[31m", "control"), (&*"ü".repeat(81), "limit is 80")]
        {
            let refused = label.parse::<Label>().unwrap_err();
            assert!(refused.contains(problem), "{refused}");
        }
    }
}
