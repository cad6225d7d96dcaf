//! `fetchwell source login`: signs in at the authorization server of an MCP server.

use clap::Args;

use super::file_args::{FileArgs, unknown};
use crate::app::failure::Failure;
use crate::app::mcp::sign_in;
use crate::app::open::runtime;
use crate::cli::print::Printer;
use crate::config::{Environment, SourcePlace};

/// Sign in at an MCP server in a browser, and keep the tokens in the state directory
#[derive(Debug, Args)]
pub(super) struct Login {
    /// The name of the source.
    name: String,

    #[command(flatten)]
    file: FileArgs,
}

impl Login {
    pub(super) fn run(self, printer: Printer, environment: &Environment) -> Result<(), Failure> {
        let settings = self.file.read_trusted()?;
        let name = &self.name;
        let source = settings.sources.iter().find(|source| source.name.as_str() == name);
        let source = source.ok_or_else(|| unknown(name, &settings))?;
        let SourcePlace::Mcp(server) = &source.place else {
            return Err(Failure::usage(&format!("`{name}` is no MCP server, so there is no sign-in")));
        };
        let open = |url: &url::Url| {
            if printer.json {
                printer.value(&serde_json::json!({ "open": url.as_str() }));
            } else {
                printer.line(format_args!("Open this URL in a browser on this machine, and sign in:"));
                printer.line(format_args!("{url}"));
            }
        };
        runtime()?.block_on(sign_in(source, server, environment, open))?;
        if printer.json {
            printer.value(&serde_json::json!({ "signed_in": name }));
        } else {
            printer.line(format_args!(
                "Signed in to `{name}`. Run `fetchwell source inspect {name}` to test it."
            ));
        }
        Ok(())
    }
}
