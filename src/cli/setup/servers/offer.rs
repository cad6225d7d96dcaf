//! An entry of a client's file as a source.
//!
//! A secret is not copied: the source names a variable that the user sets. Its value stays in memory, so that the server can
//! be asked what it has before the user sets the variable.

use std::collections::HashSet;

use secrecy::SecretString;
use serde::Serialize;
use serde_json::{Map, Value};

use super::super::clients::{ListedServer, URL_KEYS};
use super::bridge::bridged_server;
use super::secret::{has_secret, is_plain, is_plain_url};
use crate::config::{NewSource, is_protocol_header, is_variable};

/// Maximum number of words of a command line, and maximum size of all of them in bytes.
const MAX_WORDS: usize = 200;
const MAX_LINE_BYTES: usize = 16 * 1024;

/// Maximum number of variables or headers of a server, and maximum size of a value in bytes.
const MAX_VALUES: usize = 100;
const MAX_VALUE_BYTES: usize = 64 * 1024;

/// Keys of an entry that change how a program is started and have no counterpart in a source.
const UNSUPPORTED: [&str; 2] = ["cwd", "envFile"];

/// A server as a source.
#[derive(Debug, Clone)]
pub(crate) struct Offer {
    pub(crate) source: NewSource,
    /// Variables that the source needs.
    pub(crate) variables: Vec<NeededVariable>,
}

/// An environment variable that a source needs.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct NeededVariable {
    pub(crate) name: String,
    /// Key of the value in the entry of the client, such as `env.NOTES_KEY`.
    pub(crate) key: String,
    /// Value in the file of the client, unless the client has it elsewhere.
    #[serde(skip)]
    pub(crate) value: Option<SecretString>,
}

/// The reason for which a server is not offered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotOffered {
    #[error("its entry has neither a command nor a URL")]
    NoPlace,
    #[error(
        "its {0} seems to have a secret, which is not copied; add it yourself with `fetchwell source add`, with the secret in a variable"
    )]
    Secret(&'static str),
    #[error("its entry has `{0}`, which a source does not have; add it yourself with `fetchwell source add`")]
    Unsupported(&'static str),
    #[error(
        "its {0} has a placeholder that only the client replaces; add it yourself with `fetchwell source add`"
    )]
    Placeholder(&'static str),
    #[error("`{0}` of its entry is not a text, or is too long")]
    InvalidValue(String),
}

/// Returns the source for an entry. Its variables are distinct from `taken`, to which they are added.
pub(super) fn offer(
    name: &str,
    server: &ListedServer,
    taken: &mut HashSet<String>,
) -> Result<Offer, NotOffered> {
    let fields = &server.fields;
    if let Some(key) = UNSUPPORTED.iter().find(|key| fields.get(**key).is_some_and(|value| !value.is_null()))
    {
        return Err(NotOffered::Unsupported(key));
    }
    let source = NewSource { name: name.to_owned(), ..NewSource::default() };
    let mut maker = OfferMaker { offer: Offer { source, variables: Vec::new() }, taken };
    let url = URL_KEYS.iter().find_map(|key| fields.get(*key)?.as_str());
    match (fields.get("command").and_then(Value::as_str), url) {
        (Some(program), _) => maker.add_command(program, fields)?,
        (None, Some(url)) => {
            maker.add_url(url)?;
            maker.add_headers(fields)?;
        }
        (None, None) => return Err(NotOffered::NoPlace),
    }
    Ok(maker.offer)
}

/// Returns true for an entry that the user turned off.
pub(super) fn is_disabled(fields: &Map<String, Value>) -> bool {
    fields.get("disabled") == Some(&Value::Bool(true)) || fields.get("enabled") == Some(&Value::Bool(false))
}

/// Collects the keys of a source.
struct OfferMaker<'a> {
    offer: Offer,
    /// Names of variables of other servers.
    taken: &'a mut HashSet<String>,
}

impl OfferMaker<'_> {
    fn add_command(&mut self, program: &str, fields: &Map<String, Value>) -> Result<(), NotOffered> {
        let mut words = vec![program.to_owned()];
        for word in fields.get("args").and_then(Value::as_array).into_iter().flatten() {
            words.push(text_of("args", word)?);
        }
        if words.len() > MAX_WORDS || words.iter().map(String::len).sum::<usize>() > MAX_LINE_BYTES {
            return Err(NotOffered::InvalidValue("args".to_owned()));
        }
        let variables = values(fields, "env")?;
        if let Some(bridged) = bridged_server(&words, &variables) {
            self.add_url(&bridged.url)?;
            return bridged.headers.iter().try_for_each(|(name, value)| self.add_header("args", name, value));
        }
        if words.iter().any(|word| word.contains("${")) {
            return Err(NotOffered::Placeholder("command line"));
        }
        if has_secret(words.iter().map(String::as_str)) {
            return Err(NotOffered::Secret("command line"));
        }
        self.offer.source.command = words;
        for (name, value) in variables.iter().filter(|(_, value)| !value.is_empty()) {
            let place = self.place(&format!("env.{name}"), name, name, value);
            self.offer.source.env.push((name.clone(), place));
        }
        // Codex passes the variables of this list on.
        for name in fields.get("env_vars").and_then(Value::as_array).into_iter().flatten() {
            if let Some(name) = name.as_str().filter(|name| is_variable(name)) {
                self.need(name.to_owned(), "env_vars", None);
                self.offer.source.env.push((name.to_owned(), format!("env:{name}")));
            }
        }
        Ok(())
    }

    fn add_url(&mut self, url: &str) -> Result<(), NotOffered> {
        if url.contains("${") {
            return Err(NotOffered::Placeholder("URL"));
        }
        if !is_plain_url(url) {
            return Err(NotOffered::Secret("URL"));
        }
        self.offer.source.mcp = Some(url.to_owned());
        Ok(())
    }

    fn add_headers(&mut self, fields: &Map<String, Value>) -> Result<(), NotOffered> {
        for key in ["headers", "http_headers"] {
            for (name, value) in values(fields, key)?.iter().filter(|(_, value)| !value.is_empty()) {
                self.add_header(key, name, value)?;
            }
        }
        let named = values(fields, "env_http_headers")?;
        for (name, variable) in named.into_iter().filter(|(_, variable)| is_variable(variable)) {
            self.need(variable.clone(), "env_http_headers", None);
            self.offer.source.headers.push((name, format!("env:{variable}")));
        }
        if let Some(variable) = fields.get("bearer_token_env_var").and_then(Value::as_str)
            && is_variable(variable)
        {
            self.need(variable.to_owned(), "bearer_token_env_var", None);
            self.offer.source.credential = Some(format!("env:{variable}"));
        }
        Ok(())
    }

    fn add_header(&mut self, key: &str, name: &str, value: &str) -> Result<(), NotOffered> {
        if is_protocol_header(name) {
            return Ok(());
        }
        let key = format!("{key}.{name}");
        let token = value.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        match token.filter(|_| name.eq_ignore_ascii_case("authorization")) {
            Some((_, token)) => {
                let place = self.place(&key, "TOKEN", &self.prefixed("TOKEN"), token.trim());
                self.offer.source.credential = Some(place);
            }
            None => {
                let place = self.place(&key, name, &self.prefixed(name), value);
                self.offer.source.headers.push((name.to_owned(), place));
            }
        }
        Ok(())
    }

    /// Returns a value as the source has it: itself if it is no secret, or else a variable with it.
    fn place(&mut self, key: &str, name: &str, variable: &str, value: &str) -> String {
        if let Some(variable) = reference(value) {
            let place = format!("env:{variable}");
            self.need(variable.to_owned(), key, None);
            return place;
        }
        if is_plain(name, value) {
            return value.to_owned();
        }
        let prefixed = self.prefixed(variable);
        let is_free = is_variable(variable) && !self.taken.contains(variable);
        let variable = if is_free { variable.to_owned() } else { prefixed };
        let secret = (!value.contains("${")).then(|| SecretString::from(value));
        self.taken.insert(variable.clone());
        let place = format!("env:{variable}");
        self.need(variable, key, secret);
        place
    }

    fn need(&mut self, name: String, key: &str, value: Option<SecretString>) {
        if self.offer.variables.iter().all(|known| known.name != name) {
            self.offer.variables.push(NeededVariable { name, key: key.to_owned(), value });
        }
    }

    /// Returns the name of a variable that begins with the name of the source.
    fn prefixed(&self, name: &str) -> String {
        let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
        let name: String = format!("{}_{name}", self.offer.source.name).chars().map(letter).collect();
        if name.starts_with(|c: char| c.is_ascii_digit()) { format!("MCP_{name}") } else { name }
    }
}

/// Returns the texts of an object in an entry.
fn values(fields: &Map<String, Value>, key: &str) -> Result<Vec<(String, String)>, NotOffered> {
    let values = fields.get(key).and_then(Value::as_object).into_iter().flatten();
    let values = values.map(|(name, value)| Ok((name.clone(), text_of(key, value)?)));
    let values: Vec<_> = values.collect::<Result<_, NotOffered>>()?;
    if values.len() > MAX_VALUES { Err(NotOffered::InvalidValue(key.to_owned())) } else { Ok(values) }
}

fn text_of(key: &str, value: &Value) -> Result<String, NotOffered> {
    match value {
        Value::String(text) if text.len() <= MAX_VALUE_BYTES => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(switch) => Ok(switch.to_string()),
        _ => Err(NotOffered::InvalidValue(key.to_owned())),
    }
}

/// Returns the variable that a value refers to in the spellings of clients: `${NAME}`, `${env:NAME}`, `$NAME`.
fn reference(value: &str) -> Option<&str> {
    let braced = value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    let name = match braced {
        // A default after the name can be a secret, and is not used.
        Some(inner) => inner.split(":-").next().unwrap_or(inner),
        None => value.strip_prefix('$')?,
    };
    let name = name.strip_prefix("env:").unwrap_or(name);
    is_variable(name).then_some(name)
}
