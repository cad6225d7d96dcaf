//! `fetchwell token`: creates static tokens for clients that cannot sign in.

use std::str::FromStr;

use clap::{Args, Subcommand};
use fetchwell_callers::NewToken;
use fetchwell_core::terminal::output::note;
use secrecy::ExposeSecret;
use serde::Serialize;

use super::print::Printer;
use crate::app::failure::Failure;

/// Maximum length of a token's name in characters.
const MAX_NAME_CHARS: usize = 64;

/// Create a token for a client of this server.
#[derive(Debug, Args)]
pub(super) struct Token {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print a new token, and the configuration lines that accept it. Neither is stored.
    New(New),
}

#[derive(Debug, Args)]
struct New {
    /// The name of the token in the configuration and in logs: letters, digits and `-._`.
    #[arg(long, value_name = "NAME")]
    name: Name,
}

/// Name that needs no escaping in a configuration, a header or a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Name(String);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a name is 1 to {MAX_NAME_CHARS} letters, digits and `-._`, such as ci")]
struct InvalidName;

impl FromStr for Name {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let usual = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let is_name = (1..=MAX_NAME_CHARS).contains(&text.len()) && text.bytes().all(usual);
        if is_name { Ok(Self(text.to_owned())) } else { Err(InvalidName) }
    }
}

/// JSON output with the new token.
#[derive(Serialize)]
struct NewTokenOutput<'a> {
    name: &'a Name,
    token: &'a str,
    sha256: &'a str,
    /// Configuration of the token as TOML.
    configuration: String,
}

impl Token {
    pub(super) fn run(self, printer: Printer) -> Result<(), Failure> {
        let Command::New(New { name }) = self.command;
        let new = NewToken::generate()
            .map_err(|error| Failure::new(format!("no random bytes are available ({error}); try again")))?;
        let token = new.token.expose_secret();
        let sha256 = new.sha256.as_str();
        let configuration = format!("[[auth.token]]\nname = \"{}\"\nsha256 = \"{sha256}\"\n", name.0);
        if printer.json {
            printer.value(&NewTokenOutput { name: &name, token, sha256, configuration });
            return Ok(());
        }
        note(&"The token, which is shown only once. Send it in the `Authorization: Bearer` header:");
        note(&"");
        printer.line(token);
        note(&"");
        note(&"Add these lines to the configuration:");
        note(&"");
        printer.lines(configuration.trim_end());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_needs_no_escape() {
        for good in ["ci", "team.ci-2_x", &"a".repeat(64)] {
            assert_eq!(good.parse(), Ok(Name(good.to_owned())));
        }
        for bad in ["", "a b", "a\"b", "a\nb", "é", &"a".repeat(65)] {
            assert_eq!(bad.parse::<Name>(), Err(InvalidName), "{bad:?}");
        }
    }
}
