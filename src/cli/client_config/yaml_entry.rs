//! The entry of a server in the YAML configuration of Continue.
//!
//! A string of JSON is also one of YAML, so every value is written as JSON.

use serde_json::Value;

use super::launch::Launch;

/// Server of an entry.
pub(super) enum ContinueServer<'a> {
    /// A server that Continue starts.
    Local(&'a Launch),
    /// A server at a URL, with the variable of its token.
    Remote { url: &'a str, variable: Option<&'a str> },
}

/// Returns the list `mcpServers` with the entry of the server. Continue takes secrets from `~/.continue/.env`.
pub(super) fn continue_entry(server: &ContinueServer<'_>) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    let secret = |name: &str| format!("${{{{ secrets.{name} }}}}");
    let mut lines = vec!["mcpServers:".to_owned(), "  - name: fetchwell".to_owned()];
    match server {
        ContinueServer::Local(launch) => {
            lines.push("    type: stdio".to_owned());
            lines.push(format!("    command: {}", quoted(&launch.program)));
            lines.push("    args:".to_owned());
            let arguments = launch.stdio_arguments();
            lines.extend(arguments.iter().map(|word| format!("      - {}", quoted(word))));
            if !launch.variables.is_empty() {
                lines.push("    env:".to_owned());
                let value = |name: &String| format!("      {name}: {}", quoted(&secret(name)));
                lines.extend(launch.variables.iter().map(value));
            }
        }
        ContinueServer::Remote { url, variable } => {
            lines.push("    type: streamable-http".to_owned());
            lines.push(format!("    url: {}", quoted(url)));
            if let Some(name) = variable {
                lines.push("    requestOptions:".to_owned());
                lines.push("      headers:".to_owned());
                let bearer = format!("Bearer {}", secret(name));
                lines.push(format!("        Authorization: {}", quoted(&bearer)));
            }
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses an entry as Continue does.
    fn parsed(server: &ContinueServer<'_>) -> Value {
        serde_saphyr::from_str(&continue_entry(server)).unwrap()
    }

    #[test]
    fn entries_are_yaml_with_the_same_strings() {
        let launch = Launch {
            program: "/opt/a: b/fetchwell".to_owned(),
            arguments: vec![
                "serve".to_owned(),
                "--store".to_owned(),
                "/home/ann/my \"notes\" #1.db".to_owned(),
            ],
            variables: vec!["WORK_TOKEN".to_owned()],
        };
        let entry = parsed(&ContinueServer::Local(&launch))["mcpServers"][0].clone();
        assert_eq!(entry["command"], "/opt/a: b/fetchwell");
        assert_eq!(entry["args"][2], "/home/ann/my \"notes\" #1.db");
        assert_eq!(entry["env"]["WORK_TOKEN"], "${{ secrets.WORK_TOKEN }}");
        let url = "https://records.example.com/mcp";
        let entry = parsed(&ContinueServer::Remote { url, variable: Some("T") })["mcpServers"][0].clone();
        assert_eq!(entry["url"], url);
        assert_eq!(entry["requestOptions"]["headers"]["Authorization"], "Bearer ${{ secrets.T }}");
        let open = parsed(&ContinueServer::Remote { url, variable: None });
        assert!(open["mcpServers"][0].get("requestOptions").is_none());
    }
}
