//! MCP servers as sources: from settings to a client, with the secrets that the settings name.

use std::ffi::OsString;

use fetchwell_pdpp::ProviderUrl;
use fetchwell_upstream::{
    CLIENT_NAME, Credential, Mapping, McpPlace, McpServer, McpSettings, ServerCommand, preset,
};
use http::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

use super::failure::Failure;
use super::secret::{credentials, secret};
use crate::config::{Environment, McpEndpoint, McpSource, SecretPlace, SourceSettings, ValuePlace};

/// Creates the client of a server. Sends and starts nothing.
///
/// # Errors
///
/// A secret cannot be read, or is no header.
pub(crate) fn mcp_server(
    settings: &SourceSettings,
    server: &McpSource,
    environment: &Environment,
) -> Result<McpServer, Failure> {
    let table = format!("the source `{}`", settings.name);
    let value = |place: &ValuePlace| match place {
        ValuePlace::Text(text) => Ok(SecretString::from(text.clone())),
        ValuePlace::Variable(name) => secret(&SecretPlace::Variable(name.clone()), environment, &table),
        ValuePlace::File(path) => secret(&SecretPlace::File(path.clone()), environment, &table),
    };
    let place = match &server.endpoint {
        McpEndpoint::Http { url, credential, headers } => {
            let credential = match credential {
                None => Credential::None,
                Some(place) => {
                    let provider = ProviderUrl::parse_insecure(url.as_str());
                    let provider = provider.map_err(|error| Failure::usage(&error))?;
                    Credential::Token(credentials(&provider, place, environment))
                }
            };
            let headers = headers.iter().map(|(name, place)| header(&table, name, &value(place)?));
            McpPlace::Http { url: url.clone(), credential, headers: headers.collect::<Result<_, _>>()? }
        }
        McpEndpoint::Command { line, environment: variables, folder } => {
            let mut all: Vec<(String, OsString)> = environment.inherited();
            for (name, place) in variables {
                all.push((name.clone(), value(place)?.expose_secret().into()));
            }
            let folder = (!folder.as_os_str().is_empty()).then(|| folder.clone());
            McpPlace::Command(ServerCommand { line: line.clone(), environment: all, folder })
        }
    };
    let known = server.preset.as_deref().and_then(preset);
    let client_name = server.client_name.clone().or_else(|| known?.client_name.clone());
    let mapping = server.mapping.clone().or(known.map_or_else(Mapping::default, |preset| preset.mapping()));
    let settings = McpSettings {
        name: settings.name.clone(),
        label: settings.label.clone(),
        place,
        mapping,
        client_name: client_name.unwrap_or_else(|| CLIENT_NAME.to_owned()),
        deadline: settings.deadline,
    };
    McpServer::new(settings).map_err(|error| Failure::usage(&error))
}

/// Returns a header. Its value is never shown.
fn header(table: &str, name: &str, value: &SecretString) -> Result<(HeaderName, HeaderValue), Failure> {
    let invalid =
        |what: &str| Failure::new(format!("the {what} of a header of {table} is not valid: `{name}`"));
    let header = name.parse::<HeaderName>().map_err(|_invalid| invalid("name"))?;
    let mut value = HeaderValue::from_str(value.expose_secret()).map_err(|_invalid| invalid("value"))?;
    value.set_sensitive(true);
    Ok((header, value))
}
