//! The MCP servers in the file of a client.

use std::path::Path;

use serde_json::{Map, Value};

use super::super::find::Home;
use super::change::{read, target};
use super::entry::{Format, NAME};
use super::error::ClientFileError;
use super::json_file::{self, without_mark};
use super::toml_file::{self, SERVERS};
use crate::cli::client_config::Client;

/// A server in the file of a client. Its fields can have secrets, so that it has no debug output.
pub(crate) struct ListedServer {
    pub(crate) name: String,
    pub(crate) fields: Map<String, Value>,
}

/// Returns the servers in the file of a client, except the entry of this program. A missing file has none.
///
/// # Errors
///
/// The file cannot be read, is too large or is not valid. No error has a part of the text.
pub(crate) fn read_servers(
    home: &Home,
    client: Client,
    path: &Path,
) -> Result<Vec<ListedServer>, ClientFileError> {
    let Some(text) = read(&target(home, path)?)? else { return Ok(Vec::new()) };
    let (key, root) = match Format::for_client(client) {
        Format::Json { servers, .. } => {
            (servers, json_file::parse(without_mark(&text))?.to_serde_value().unwrap_or_default())
        }
        Format::Toml => (SERVERS, toml_value(&text)?),
    };
    let unexpected = |place: String| ClientFileError::UnexpectedShape { place, expected: "an object" };
    let mut root = match root {
        Value::Null => return Ok(Vec::new()),
        Value::Object(root) => root,
        _ => return Err(unexpected("the whole".to_owned())),
    };
    let servers = match root.shift_remove(key) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(servers)) => servers,
        Some(_) => return Err(unexpected(format!("`{key}`"))),
    };
    let listed = servers.into_iter().filter(|(name, _)| name != NAME);
    Ok(listed
        .filter_map(|(name, entry)| match entry {
            Value::Object(fields) => Some(ListedServer { name, fields }),
            _ => None,
        })
        .collect())
}

fn toml_value(text: &str) -> Result<Value, ClientFileError> {
    toml_file::parse(text)?;
    // The same text was parsed above.
    let table: toml::Table = toml::from_str(text).unwrap_or_default();
    Ok(serde_json::to_value(table).unwrap_or_default())
}
