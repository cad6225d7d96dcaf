//! Asks the chosen servers what they have, and adds those with a search and a fetch to the user's configuration.

use std::path::Path;

use fetchwell_core::terminal::output::note;
use fetchwell_source::SourceError;
use fetchwell_upstream::{Inspection, Mapping, preset};
use futures_util::future::join_all;
use secrecy::ExposeSecret;

use super::super::super::print::Printer;
use super::super::super::probe::error_with_remedy;
use super::config::UserConfig;
use super::find::McpCandidate;
use super::offer::NeededVariable;
use super::report::{Calls, SourceReport};
use crate::app::failure::Failure;
use crate::app::mcp::mcp_server;
use crate::app::open::runtime;
use crate::config::{
    CredentialSettings, Environment, McpEndpoint, McpSource, NewSource, SourcePlace, ValuePlace,
};

/// Maximum number of servers that are asked at the same time.
const MAX_ASKED: usize = 4;

/// Asks the servers, and adds those that can be searched. Returns a report of each, and the new configuration.
///
/// # Errors
///
/// The configuration cannot be edited or written. Nothing is added.
pub(crate) fn add_servers(
    chosen: &[McpCandidate],
    config: &UserConfig,
    store: &Path,
    environment: &Environment,
    printer: Printer,
) -> Result<(Vec<SourceReport>, UserConfig), Failure> {
    let mut reports = Vec::with_capacity(chosen.len());
    let mut sources = Vec::new();
    let runtime = runtime()?;
    for some in chosen.chunks(MAX_ASKED) {
        let names: Vec<String> = some.iter().map(|candidate| format!("`{}`", candidate.name())).collect();
        note(&format_args!("asking {} what they have", names.join(", ")));
        let asked = some.iter().map(|candidate| ask(candidate, config, environment));
        for (report, source) in runtime.block_on(join_all(asked)) {
            if !printer.json {
                report.print(printer);
            }
            reports.push(report);
            sources.extend(source);
        }
    }
    if sources.is_empty() {
        return Ok((reports, config.clone()));
    }
    let edited = config.with_sources(&sources, store)?;
    edited.save()?;
    Ok((reports, edited))
}

/// Asks a server. Returns its source if it is to be added.
async fn ask(
    candidate: &McpCandidate,
    config: &UserConfig,
    environment: &Environment,
) -> (SourceReport, Option<NewSource>) {
    let is_unset = |variable: &&NeededVariable| environment.credential(&variable.name).is_none();
    let unset: Vec<NeededVariable> = candidate.variables.iter().filter(is_unset).cloned().collect();
    if unset.iter().any(|variable| variable.value.is_none()) {
        return (SourceReport::unset(candidate, unset), None);
    }
    let inspection = match inspect(candidate, config, environment).await {
        Ok(inspection) => inspection,
        Err(AskError::SignIn) => {
            return (SourceReport::sign_in(candidate), Some(candidate.source.clone()));
        }
        Err(AskError::Other(problem)) => return (SourceReport::not_added(candidate, problem), None),
    };
    let Some(calls) = calls(&inspection) else {
        let problem = inspection.problem.unwrap_or_else(|| "it has no search and fetch".to_owned());
        return (SourceReport::not_added(candidate, problem), None);
    };
    let preset = calls.preset.map(str::to_owned);
    let source = NewSource { preset, ..candidate.source.clone() };
    (SourceReport::added(candidate, calls, unset), Some(source))
}

/// The reason for which a server does not say what it has.
enum AskError {
    /// It asks for a sign-in.
    SignIn,
    Other(String),
}

async fn inspect(
    candidate: &McpCandidate,
    config: &UserConfig,
    environment: &Environment,
) -> Result<Inspection, AskError> {
    let settings = config.settings_of(&candidate.source);
    let settings = settings.map_err(|error| AskError::Other(error.to_string()))?;
    let SourcePlace::Mcp(server) = &settings.place else {
        return Err(AskError::Other("it is no MCP server".to_owned()));
    };
    let has_credential = candidate.source.credential.is_some() || !candidate.source.headers.is_empty();
    let server = with_values(server, &candidate.variables);
    let server = mcp_server(&settings, &server, environment);
    let server = server.map_err(|failure| AskError::Other(failure.message))?;
    server.inspect().await.map_err(|error| match error {
        SourceError::Reauthorize { .. } if !has_credential => AskError::SignIn,
        error => AskError::Other(error_with_remedy(error, &settings)),
    })
}

/// Returns the tools that a source calls: those of its preset, or else the recognized ones.
fn calls(inspection: &Inspection) -> Option<Calls> {
    let of_preset = inspection.preset.and_then(preset).map(|preset| preset.mapping());
    let mapping = of_preset.as_ref().or(inspection.used.as_ref())?;
    let Mapping { search: Some(search), fetch: Some(fetch), .. } = mapping else { return None };
    let call = |tool: &str, argument: Option<&str>| format!("{tool}({})", argument.unwrap_or_default());
    Some(Calls {
        calls: vec![call(&search.tool, search.query.as_deref()), call(&fetch.tool, fetch.id.as_deref())],
        preset: inspection.preset,
    })
}

/// Returns a server with the values of the client's file for variables, in memory only. They are what the client starts it
/// with.
fn with_values(server: &McpSource, variables: &[NeededVariable]) -> McpSource {
    let value = |name: &str| {
        let variable = variables.iter().find(|variable| variable.name == name)?;
        Some(variable.value.as_ref()?.expose_secret().to_owned())
    };
    let mut server = server.clone();
    let places = match &mut server.endpoint {
        McpEndpoint::Http { credential, headers, .. } => {
            if let Some(CredentialSettings::Variable(name)) = &*credential
                && let Some(token) = value(name)
            {
                *credential = None;
                headers.push(("authorization".to_owned(), ValuePlace::Text(format!("Bearer {token}"))));
            }
            headers
        }
        McpEndpoint::Command { environment, .. } => environment,
    };
    for (_, place) in places {
        if let ValuePlace::Variable(name) = &*place
            && let Some(text) = value(name)
        {
            *place = ValuePlace::Text(text);
        }
    }
    server
}
