//! Steps that give ChatGPT access to records of this machine.
//!
//! The recipe creates a token and a configuration before the tunnel, so that a server without authentication never
//! becomes public. It is shell text: everything but commands and parts of the configuration file is a comment.

use serde_json::Value;

use super::client::shell_word;

/// Port of the default listening address of `serve`.
const PORT: u16 = fetchwell_http::DEFAULT_LISTEN.port();

/// Name of the source in the configuration of the recipe.
const SOURCE: &str = "records";

/// Returns the recipe. `arguments` are those of `serve`, with absolute paths.
pub(super) fn chatgpt_recipe(program: &str, arguments: &[String]) -> String {
    let program = shell_word(program);
    let (configuration, file) = match value_of(arguments, "--config") {
        Some(file) => (lines_for_existing_file(file), file),
        None => (new_file_lines(arguments), NEW_FILE),
    };
    let file = shell_word(file);
    format!(
        "# ChatGPT connects from the internet and signs in by OAuth, so you need an authorization server (docs/hosting.md).
# Replace YOUR-HOST with the public host of your tunnel, YOUR-ISSUER with the host of the authorization server, and
# YOUR-SUBJECT with your `sub` there.

# 1. Create a token, for clients that accept one. Requests without a token or a sign-in are refused.
{program} token new --name me

{configuration}
# 3. Check the file, and serve it.
{program} config check {file}
{program} serve --config {file}

# 4. Point the tunnel at the server. The tunnel must not rewrite `Host`.
ngrok http {PORT} --url https://YOUR-HOST

# 5. Check that it answers 401 without the token, and 200 with it.
curl -si https://YOUR-HOST/v1/streams
curl -si https://YOUR-HOST/v1/streams -H \"Authorization: Bearer TOKEN\"

# 6. In ChatGPT: Settings > Apps & Connectors > Create (in developer mode), with OAuth and this URL:
#    https://YOUR-HOST/mcp/openai"
    )
}

/// Name of the configuration file that the recipe creates if there is none.
const NEW_FILE: &str = "fetchwell.toml";

const AUTH: &str =
    "[auth]\nissuer = \"https://YOUR-ISSUER\"\n\n[[auth.subject]]\nsubject = \"YOUR-SUBJECT\"\n";

/// Returns the contents of a new configuration file with the source that the flags name.
fn new_file_lines(arguments: &[String]) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    let keys = [("--store", "store"), ("--provider-url", "url"), ("--cache-root", "cache_root")];
    let said = keys.iter().filter_map(|(flag, key)| Some((key, value_of(arguments, flag)?)));
    let place: String = said.map(|(key, value)| format!("{key} = {}\n", quoted(value))).collect();
    format!(
        "# 2. Save this as {NEW_FILE}, with the [[auth.token]] lines of step 1 below it.
public_url = \"https://YOUR-HOST\"

{AUTH}sources = [\"{SOURCE}\"]

[[source]]
name = \"{SOURCE}\"
{place}"
    )
}

/// Returns the lines to add to an existing file with its own sources.
fn lines_for_existing_file(file: &str) -> String {
    // A quoted path cannot end the comment.
    let file = Value::from(file);
    format!(
        "# 2. Add the missing keys to {file}: `public_url` above its first table, the rest below, with the
#    [[auth.token]] lines of step 1, and YOUR-SOURCE replaced by the name of a source.
public_url = \"https://YOUR-HOST\"

{AUTH}sources = [\"YOUR-SOURCE\"]
"
    )
}

/// Returns the value that follows a flag.
fn value_of<'a>(arguments: &'a [String], flag: &str) -> Option<&'a str> {
    let mut words = arguments.iter().skip_while(|word| *word != flag);
    words.next()?;
    words.next().map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses the lines of the configuration, between the comments of steps 2 and 3.
    fn configuration(recipe: &str) -> toml::Table {
        let (_, rest) = recipe.split_once("# 2. ").unwrap();
        let (configuration, _) = rest.split_once("# 3. ").unwrap();
        let lines: Vec<&str> = configuration.lines().skip(1).collect();
        toml::from_str(&lines.join("\n")).unwrap()
    }

    #[test]
    fn token_step_precedes_the_tunnel() {
        let arguments = ["serve", "--store", "/home/ann/my notes.db"].map(str::to_owned);
        let recipe = chatgpt_recipe("/opt/my programs/fetchwell", &arguments);
        let at = |text: &str| recipe.find(text).unwrap_or_else(|| panic!("no {text} in {recipe}"));
        assert!(at("'/opt/my programs/fetchwell' token new") < at("[auth]") && at("[auth]") < at(" serve "));
        assert!(at(" serve ") < at("ngrok http 7400") && !recipe.contains("host-header"));
        let table = configuration(&recipe);
        assert_eq!(table["public_url"].as_str(), Some("https://YOUR-HOST"));
        assert_eq!(table["source"][0]["store"].as_str(), Some("/home/ann/my notes.db"));
        assert_eq!(table["auth"]["subject"][0]["sources"][0], table["source"][0]["name"]);
    }

    #[test]
    fn every_kind_of_source_has_its_configuration() {
        let arguments = ["serve", "--provider-url", "https://r.example/", "--cache-root", "/c\"d"];
        let table = configuration(&chatgpt_recipe("fetchwell", &arguments.map(str::to_owned)));
        assert_eq!(table["source"][0]["url"].as_str(), Some("https://r.example/"));
        assert_eq!(table["source"][0]["cache_root"].as_str(), Some("/c\"d"));
        let arguments = ["serve", "--config", "/etc/my fetchwell.toml"].map(str::to_owned);
        let recipe = chatgpt_recipe("fetchwell", &arguments);
        assert!(recipe.contains("fetchwell serve --config '/etc/my fetchwell.toml'\n"), "{recipe}");
        assert!(
            !recipe.contains("[[source]]")
                && recipe.contains("Add the missing keys to \"/etc/my fetchwell.toml\""),
            "{recipe}"
        );
    }
}
