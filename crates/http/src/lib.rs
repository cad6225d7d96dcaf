//! The HTTP server: the MCP endpoints, the record-server API, the context-protection API and operations endpoints.
//!
//! `/mcp` serves the standard profile, `/mcp/openai` that of ChatGPT's deep research and `/mcp/docs` that of document
//! search; `/v1` and `/api/v1` serve records; `/health` and `/metrics` can have an address of their own. Without
//! authentication only loopback addresses are served, and requests that came through a proxy are refused.
//!
//! * `server`: sockets, connections and their limits
//! * `middleware`: authentication and the other checks of requests
//! * `mcp`, `v1`, `api`, `documents`: endpoints of programs
//! * `pages`: record pages, `/` and `/.well-known`
//! * `ops`: health, metrics and their listener
//! * `site`, `router`, `serve`: settings, routes and start of a server
//! * `public_url`, `resource_metadata`, `probes`, `headers`: URLs, paths and header names that several of these use
//! * `answer`: runs a call of an API or a page, records it and builds the response
//! * `error`, `encoding`: errors of requests for records, and percent-encoding, for both APIs
//! * `error_format`: formats of the errors of middleware
//! * `body_size`: sizes of responses for telemetry
//! * `openapi`, `description`: `/openapi.json`, assembled from what the endpoints describe
//! * `in_process`: the APIs without a socket
//!
//! Uses `callers`, `core`, `mcp`, `outbound`, `source`, `state`, `telemetry` and `tools`.

mod answer;
mod api;
mod body_size;
mod description;
mod documents;
mod encoding;
mod error;
mod error_format;
mod headers;
mod in_process;
mod mcp;
mod middleware;
mod openapi;
mod ops;
mod pages;
mod probes;
mod public_url;
mod resource_metadata;
mod router;
mod serve;
mod server;
mod site;
mod v1;

pub use self::in_process::InProcess;
pub use self::middleware::check_host::{AllowedHost, AllowedNames, AllowedOrigin};
pub use self::middleware::rate_limit::{RateLimit, RateLimiter};
pub use self::middleware::served::{AuthMode, Callers};
pub use self::ops::listener::serve_ops;
pub use self::pages::setup::{
    ClientFileState, PlannedClient, PlannedImport, PlannedSource, SETUP, SetupActions, SetupChoice,
    SetupOutcome, SetupPlan, serve_setup,
};
pub use self::pages::sources::{SIGNED_IN, SOURCES};
pub use self::public_url::{PublicUrl, PublicUrlError};
pub use self::serve::serve;
pub use self::server::forwarded::{TrustedProxies, TrustedProxy};
pub use self::server::limits::{
    DEFAULT_MAX_CONNECTIONS, DEFAULT_MAX_CONNECTIONS_PER_ADDRESS, DEFAULT_WRITE_TIMEOUT, Limits,
};
pub use self::server::listener::{CallerCheck, DEFAULT_LISTEN, ListenError, bind, bind_ops, may_listen};
pub use self::server::tls::{Tls, TlsError, TlsSettings};
pub use self::site::{ConfigurationView, CurrentConfiguration, ShownSetting, Site};
