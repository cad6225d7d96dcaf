//! `fetchwell serve`: MCP over standard input and output, or MCP and the records themselves over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

use super::audience::{open_own, served};
use super::failure::Failure;
use super::reload::Reload;
use super::settings::SourceArgs;
use super::state::StateArgs;
use super::{circuits, print, stop};
use crate::config::{Environment, FileSettings, HttpSettings, OTLP_ENDPOINT_VARIABLE};
use crate::cursor::{Cursors, Skew};
use crate::http::{DEFAULT_LISTEN, Guarded, RateLimiter, Served, Site, Tls, bind, serve};
use crate::mcp::{Server, serve_stdio};
use crate::state::StateError;
use crate::telemetry::{InvalidOtlpEndpoint, OtlpEndpoint, Spans, Telemetry};
use crate::tools::Profile;

/// Serve MCP and the record-server API (/v1) over HTTP on this machine, or MCP over standard input and output.
#[derive(Debug, Args)]
pub(super) struct Serve {
    #[command(flatten)]
    source: SourceArgs,

    /// Serve over standard input and output.
    #[arg(long, conflicts_with = "listen")]
    stdio: bool,

    /// Serve HTTP at this address of this machine [default: 127.0.0.1:7400]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,

    /// The tools a stdio client sees; HTTP clients choose by path (/mcp, /mcp/openai).
    #[arg(long, value_enum, default_value_t = ProfileArg::Standard, requires = "stdio")]
    profile: ProfileArg,

    #[command(flatten)]
    state: StateArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ProfileArg {
    /// All tools.
    Standard,
    /// Exactly search(query) and fetch(id).
    Openai,
}

impl From<ProfileArg> for Profile {
    fn from(profile: ProfileArg) -> Self {
        match profile {
            ProfileArg::Standard => Self::Standard,
            ProfileArg::Openai => Self::OpenAi,
        }
    }
}

/// How long threads that wait for the system may hold up the end of the program.
const LAST_WAIT: Duration = Duration::from_millis(100);

/// How long the last calls may take to be written.
const LAST_WRITE: Duration = Duration::from_secs(1);

/// How long the last spans may take to be sent.
const LAST_SPANS: Duration = Duration::from_secs(2);

impl Serve {
    pub(super) fn run(self, environment: &Environment, skew: Skew) -> Result<(), Failure> {
        let configured = self.source.configured(environment)?;
        let settings = configured.settings.clone();
        // Whoever starts a server for themselves needs no token.
        let auth = settings.auth.as_ref().filter(|_| !self.stdio);
        let opened = open_own(&settings, auth, environment, &[])?;
        // One client keeps its server running for as long as it pages; many clients outlive a restart.
        let state = match self.stdio {
            true => None,
            false => Some(self.state.directory(settings.state_dir.clone())?),
        };
        let cursors = Arc::new(match &state {
            None => Cursors::in_memory(skew).map_err(StateError::from)?,
            Some(state) => Cursors::in_directory(state, skew)?,
        });
        let served = served(&settings, auth, environment, &opened, cursors)?;
        let telemetry = match &state {
            None => Telemetry::in_memory(settings.ring),
            Some(state) => Telemetry::in_directory(state, settings.ring),
        };
        let recorded = telemetry.clone();
        if let Some(endpoint) = otlp_endpoint(environment, &settings)? {
            let spans = Spans::start(&endpoint).map_err(|error| Failure::new(error.to_string()))?;
            telemetry.export_to(spans);
        }
        let rate_limiter = RateLimiter::default();
        rate_limiter.replace(settings.rate_limit);
        let threads =
            if self.stdio { 1 } else { std::thread::available_parallelism().map_or(2, usize::from) };
        let runtime = Builder::new_multi_thread().worker_threads(threads).enable_all().build();
        let runtime =
            runtime.map_err(|error| Failure::new(format!("the system gives no threads ({error})")))?;
        let stop = CancellationToken::new();
        runtime.spawn(stop_at_signal(stop.clone()));
        if let Some(state) = state {
            runtime.spawn(circuits::report(served.clone(), state, stop.clone()));
        }
        let reload = Reload {
            configured,
            environment: environment.clone(),
            opened,
            served: served.clone(),
            rate_limiter: rate_limiter.clone(),
            telemetry: telemetry.clone(),
        };
        let _watching = reload.follow(runtime.handle().clone());
        let ended = match served {
            Served::Everybody(live) if self.stdio => {
                let server = Server::new(live, self.profile.into(), telemetry);
                runtime.block_on(serve_stdio(server, stop)).map_err(Failure::new)
            }
            served => {
                let address = self.listen.or(settings.listen).unwrap_or(DEFAULT_LISTEN);
                let http = settings.http;
                let (names, proxies, limits) = (http.names(), http.trusted_proxies.clone(), http.limits());
                let public_url = http.public_url.clone();
                let site = Site { served, telemetry, rate_limiter, public_url, names, proxies, limits };
                runtime.block_on(serve_http(address, site, http, stop))
            }
        };
        // A read of standard input cannot be called off; the program ends without it.
        runtime.shutdown_timeout(LAST_WAIT);
        recorded.flush(LAST_WRITE);
        recorded.stop_exporting(LAST_SPANS);
        ended
    }
}

/// Where spans go: as the environment says, else as the file does.
fn otlp_endpoint(
    environment: &Environment,
    settings: &FileSettings,
) -> Result<Option<OtlpEndpoint>, Failure> {
    let Some(text) = &environment.otlp_endpoint else { return Ok(settings.otlp_endpoint.clone()) };
    let endpoint: Result<OtlpEndpoint, _> = text.parse();
    endpoint
        .map(Some)
        .map_err(|error: InvalidOtlpEndpoint| Failure::usage(&format!("{OTLP_ENDPOINT_VARIABLE}: {error}")))
}

async fn stop_at_signal(stop: CancellationToken) {
    stop::requested().await;
    stop.cancel();
}

async fn serve_http(
    address: SocketAddr,
    site: Site,
    http: HttpSettings,
    stop: CancellationToken,
) -> Result<(), Failure> {
    let tls = http.tls.map(Tls::load).transpose()?;
    let guarded = match site.served {
        Served::Everybody(_) => Guarded::ByNobody,
        Served::Callers(_) => Guarded::ByAuthentication,
    };
    let listener = bind(address, guarded).await?;
    let address = listener.local_addr().unwrap_or(address);
    let scheme = if tls.is_some() { "https" } else { "http" };
    let public = http.public_url.map(|url| format!(", for clients at {url}")).unwrap_or_default();
    print::note(&format_args!(
        "fetchwell serves MCP at {scheme}://{address}/mcp (and /mcp/openai), records at /v1 and /api/v1{public}; stop it \
         with Ctrl-C"
    ));
    let served = serve(listener, tls, site, stop).await;
    served.map_err(|error| Failure::new(format!("the server stopped ({error})")))
}
