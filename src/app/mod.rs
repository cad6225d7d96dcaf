//! Wiring of the program: from flags and files to settings, from settings to open sources and a running server.
//!
//! * `settings`, `state`: flags and configuration files as settings; the state directory
//! * `default_store`: the store that is used if no source is named
//! * `open`, `mcp`: from settings to open sources
//! * `embedding`, `rerank`, `secret`: the models of a configuration; secrets in variables and files
//! * `background`, `imports`: builds of vectors, maintenance of stores, and imports, while a server runs
//! * `auth_mode`, `callers`: the authentication mode of a server, the sources that each caller may read, and their sign-ins
//! * `server`: assembly and end of a server
//! * `reload`: a changed configuration file while calls are answered
//! * `circuits`: reports of open circuit breakers for `fetchwell doctor`
//! * `failure`, `stop`: the failure of a command with its exit code, and the signals that end the program
//!
//! **Invariant:** no command is known here.

pub(crate) mod auth_mode;
pub(crate) mod background;
pub(crate) mod callers;
pub(crate) mod circuits;
pub(crate) mod default_store;
pub(crate) mod embedding;
pub(crate) mod failure;
pub(crate) mod imports;
pub(crate) mod mcp;
pub(crate) mod open;
pub(crate) mod reload;
pub(crate) mod rerank;
pub(crate) mod secret;
pub(crate) mod server;
pub(crate) mod settings;
pub(crate) mod state;
pub(crate) mod stop;
