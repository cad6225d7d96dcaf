//! MCP servers as sources: from settings to a client, with the secrets that the settings name.

use std::ffi::OsString;
use std::sync::Arc;

use fetchwell_outbound::is_confidential;
use fetchwell_pdpp::ProviderUrl;
use fetchwell_upstream::oauth::{
    Account, Bearer, ClientKind, Login, LoginSettings, SignInServer, TokenStore, Tokens,
};
use fetchwell_upstream::{
    CLIENT_NAME, CallerServerSettings, CallerServers, CallerSessions, Credential, Mapping, McpPlace,
    McpServer, McpSettings, ServerCommand, preset,
};
use http::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::failure::Failure;
use super::secret::{credentials, secret};
use crate::config::{
    CredentialSettings, Environment, McpEndpoint, McpSource, OAuthClient, SecretPlace, SourceSettings,
    ValuePlace,
};

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
    let environment = &environment.with_state_dir(server.state_dir.as_ref());
    let table = format!("the source `{}`", settings.name);
    let value = |place: &ValuePlace| value(place, environment, &table);
    let place = match &server.endpoint {
        McpEndpoint::Http { url, credential, headers, oauth: _ } => {
            let credential = match credential {
                None if !is_confidential(url) || environment.state_dir.is_none() => Credential::None,
                // The header takes the place of a sign-in.
                None if headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) => {
                    Credential::None
                }
                Some(CredentialSettings::Caller) => return Err(Failure::usage(&of_callers(settings))),
                None => {
                    let tokens = sign_ins(settings, url, environment)?;
                    Credential::SignIn(Bearer::new(account(settings, url)?, tokens))
                }
                Some(place) => {
                    let provider = ProviderUrl::parse_insecure(url.as_str());
                    let provider = provider.map_err(|error| Failure::usage(&error))?;
                    Credential::Token(Box::new(credentials(&provider, place, environment)))
                }
            };
            let headers = header_values(settings, headers, environment)?;
            McpPlace::Http { url: url.clone(), credential, headers }
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
    let settings = McpSettings {
        name: settings.name.clone(),
        label: settings.label.clone(),
        place,
        mapping: mapping(server),
        client_name: client_name(server),
        deadline: settings.deadline,
    };
    McpServer::new(settings).map_err(|error| Failure::usage(&error))
}

/// Creates the client of a server that each caller signs in to. Sends nothing.
///
/// # Errors
///
/// The server is not one of these, or a header cannot be read or is not valid.
pub(crate) fn caller_servers(
    settings: &SourceSettings,
    server: &McpSource,
    environment: &Environment,
    sessions: CallerSessions,
) -> Result<CallerServers, Failure> {
    let McpEndpoint::Http { url, headers, .. } = &server.endpoint else {
        return Err(Failure::usage(&format!("callers cannot sign in to the command of `{}`", settings.name)));
    };
    let settings = CallerServerSettings {
        name: settings.name.clone(),
        label: settings.label.clone(),
        url: url.clone(),
        headers: header_values(settings, headers, environment)?,
        mapping: mapping(server),
        client_name: client_name(server),
        deadline: settings.deadline,
    };
    CallerServers::new(settings, sessions).map_err(|error| Failure::usage(&error))
}

/// Returns what to do with a source that is read with the sign-in of each caller, where no caller is known.
pub(crate) fn of_callers(settings: &SourceSettings) -> String {
    format!(
        "each caller signs in to the source `{}` on the page /sources of `fetchwell serve`, so there is nothing to call it with \
         here; for a sign-in of its own, remove `credential` and run `fetchwell source login`",
        settings.name
    )
}

/// Returns the mapping of the configuration, completed by that of the preset.
fn mapping(server: &McpSource) -> Mapping {
    let known = server.preset.as_deref().and_then(preset);
    server.mapping.clone().or(known.map_or_else(Mapping::default, |preset| preset.mapping()))
}

fn client_name(server: &McpSource) -> String {
    let known = server.preset.as_deref().and_then(preset);
    let name = server.client_name.clone().or_else(|| known?.client_name.clone());
    name.unwrap_or_else(|| CLIENT_NAME.to_owned())
}

fn header_values(
    settings: &SourceSettings,
    headers: &[(String, ValuePlace)],
    environment: &Environment,
) -> Result<Vec<(HeaderName, HeaderValue)>, Failure> {
    let table = format!("the source `{}`", settings.name);
    let header =
        |(name, place): &(String, ValuePlace)| header(&table, name, &value(place, environment, &table)?);
    headers.iter().map(header).collect()
}

/// Signs a person in at the authorization server of a source. `open` gets the URL for the browser.
///
/// # Errors
///
/// The source needs no sign-in, or the sign-in failed.
pub(crate) async fn sign_in(
    settings: &SourceSettings,
    server: &McpSource,
    environment: &Environment,
    open: impl FnOnce(&Url),
) -> Result<(), Failure> {
    let environment = &environment.with_state_dir(server.state_dir.as_ref());
    let name = &settings.name;
    if settings.signs_callers_in() {
        return Err(Failure::usage(&of_callers(settings)));
    }
    let McpEndpoint::Http { url, credential: None, oauth, .. } = &server.endpoint else {
        return Err(Failure::usage(&format!(
            "the source `{name}` has a credential of its own or is started here, so there is no sign-in"
        )));
    };
    let login = login_settings(settings, oauth, environment)?;
    let login = Login::new(account(settings, url)?, login, sign_ins(settings, url, environment)?);
    let signed_in = login.run(open).await;
    signed_in.map(drop).map_err(|error| Failure::new(format!("{error}; {}", error.remedy())))
}

/// Tests what can be tested of a server that each caller signs in to: that it answers, and its authorization server. Returns
/// a description of what was found.
///
/// # Errors
///
/// Callers cannot sign in.
pub(crate) async fn check_sign_in(
    settings: &SourceSettings,
    server: &McpSource,
    environment: &Environment,
) -> Result<String, Failure> {
    let McpEndpoint::Http { url, oauth, .. } = &server.endpoint else {
        return Err(Failure::usage(&of_callers(settings)));
    };
    let login = login_settings(settings, oauth, environment)?;
    let found = SignInServer::discover(&account(settings, url)?, &login).await;
    let found = found.map_err(|error| Failure::new(format!("{error}; {}", error.remedy())))?;
    let client = match found.client {
        ClientKind::Configured { client_id } => format!("as the client `{client_id}` of `oauth`"),
        ClientKind::Described { url } => format!("as the client of {url}"),
        ClientKind::Registered => "where fetchwell registers a client at the first sign-in".to_owned(),
    };
    Ok(format!("the server answers, and asks for a sign-in at {}, {client}", found.name))
}

/// Returns the client of a sign-in; reads its secret.
///
/// # Errors
///
/// The secret cannot be read.
pub(crate) fn login_settings(
    settings: &SourceSettings,
    oauth: &OAuthClient,
    environment: &Environment,
) -> Result<LoginSettings, Failure> {
    let table = format!("the source `{}`", settings.name);
    let client_secret = oauth.client_secret.as_ref().map(|place| secret(place, environment, &table));
    Ok(LoginSettings {
        client_id: oauth.client_id.clone(),
        client_secret: client_secret.transpose()?,
        client_metadata_url: oauth.client_metadata_url.clone(),
        scopes: oauth.scopes.clone(),
        redirect_port: oauth.redirect_port,
    })
}

/// Returns a text of the configuration, which may be in a variable or a file.
fn value(place: &ValuePlace, environment: &Environment, table: &str) -> Result<SecretString, Failure> {
    match place {
        ValuePlace::Text(text) => Ok(SecretString::from(text.clone())),
        ValuePlace::Variable(name) => secret(&SecretPlace::Variable(name.clone()), environment, table),
        ValuePlace::File(path) => secret(&SecretPlace::File(path.clone()), environment, table),
    }
}

fn account(settings: &SourceSettings, url: &Url) -> Result<Account, Failure> {
    let account = Account::new(settings.name.clone(), url.clone(), None);
    account.map_err(|error| Failure::new(format!("{error}; {}", error.remedy())))
}

/// Returns the storage of the tokens of a source.
fn sign_ins(
    settings: &SourceSettings,
    url: &Url,
    environment: &Environment,
) -> Result<Arc<dyn Tokens>, Failure> {
    let unknown =
        || Failure::new("the user's state directory is unknown; set state_dir in the configuration file");
    let folder = environment.state_dir.as_ref().ok_or_else(unknown)?;
    Ok(Arc::new(TokenStore::new(account(settings, url)?, folder)))
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
