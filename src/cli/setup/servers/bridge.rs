//! Servers at a URL that a client reaches through the program `mcp-remote`.
//!
//! The program signs in and forwards messages. A source calls the URL itself, so that it needs no program.

/// Program that forwards messages to a URL.
const BRIDGE: &str = "mcp-remote";

/// Flags of the program that a source does not need.
const NEEDLESS_FLAGS: [&str; 3] = ["--allow-http", "--debug", "--silent"];

/// Server behind the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BridgedServer {
    pub(super) url: String,
    /// Names and values of headers.
    pub(super) headers: Vec<(String, String)>,
}

/// Returns the server that a command line forwards to, or `None` for any other command line, and for one with a flag that
/// changes how the server is called.
pub(super) fn bridged_server(words: &[String], variables: &[(String, String)]) -> Option<BridgedServer> {
    let version = format!("{BRIDGE}@");
    let is_bridge = |word: &String| word == BRIDGE || word.starts_with(&version);
    let program = words.iter().position(is_bridge)?;
    let mut rest = words.iter().skip(program + 1).map(String::as_str);
    let mut url = None;
    let mut headers = Vec::new();
    while let Some(word) = rest.next() {
        match word {
            "--header" => headers.push(header(rest.next()?, variables)?),
            "--transport" => {
                if !matches!(rest.next()?, "http-only" | "http-first") {
                    return None;
                }
            }
            flag if NEEDLESS_FLAGS.contains(&flag) => {}
            place if url.is_none() && place.starts_with("http") => url = Some(place),
            // The port of its sign-in.
            port if url.is_some() && port.bytes().all(|byte| byte.is_ascii_digit()) => {}
            _ => return None,
        }
    }
    // The earlier transport of MCP, which a source does not speak.
    let url = url.filter(|url| !url.trim_end_matches('/').ends_with("/sse"))?;
    Some(BridgedServer { url: url.to_owned(), headers })
}

/// Returns the name and the value of a header, in which the variables of the entry are replaced.
fn header(text: &str, variables: &[(String, String)]) -> Option<(String, String)> {
    let (name, value) = text.split_once(':')?;
    let mut value = value.trim().to_owned();
    for (variable, text) in variables {
        value = value.replace(&format!("${{{variable}}}"), text);
    }
    Some((name.trim().to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expect: Option<(&str, &[(&str, &str)])>) {
        let words: Vec<String> = line.split('|').map(str::to_owned).collect();
        let variables = [("AUTH".to_owned(), "Bearer abc".to_owned())];
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let expect = expect.map(|(url, headers)| BridgedServer {
            url: url.to_owned(),
            headers: headers.iter().map(pair).collect(),
        });
        assert_eq!(bridged_server(&words, &variables), expect, "{line}");
    }

    #[test]
    fn servers_behind_the_program_are_called_themselves() {
        let url = "https://mcp.example.com/mcp";
        check(&format!("npx|-y|mcp-remote@latest|{url}|3334|--transport|http-only"), Some((url, &[])));
        check(
            &format!("npx|mcp-remote|{url}|--header|Authorization:${{AUTH}}|--header|X-A: b"),
            Some((url, &[("Authorization", "Bearer abc"), ("X-A", "b")])),
        );
        for line in [
            "npx|-y|other-server|https://mcp.example.com/mcp",
            "npx|mcp-remote|https://mcp.example.com/sse",
            "npx|mcp-remote|https://mcp.example.com/mcp|--transport|sse-only",
            "npx|mcp-remote|https://mcp.example.com/mcp|--static-oauth-client-info|{}",
            "npx|mcp-remote",
        ] {
            check(line, None);
        }
    }
}
