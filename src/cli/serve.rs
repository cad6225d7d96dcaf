//! `fetchwell serve`: MCP over standard input and output, or MCP and the records themselves over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

use super::print;
use crate::app::auth_mode::{open_own, served};
use crate::app::failure::Failure;
use crate::app::reload::Reload;
use crate::app::settings::SourceArgs;
use crate::app::state::StateArgs;
use crate::app::{circuits, stop};
use crate::config::{Environment, FileSettings, HttpSettings, OTLP_ENDPOINT_VARIABLE, insecure_spans};
use crate::cursor::{Cursors, Skew, Timing};
use crate::http::{
    AuthMode, DEFAULT_LISTEN, Guarded, RateLimiter, Site, Tls, bind, bind_ops, serve, serve_ops,
};
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
    /// Returns whether a client starts the server and talks to it over standard input and output.
    pub(super) fn is_stdio(&self) -> bool {
        self.stdio
    }

    pub(super) fn run(self, environment: &Environment, skew: Skew) -> Result<(), Failure> {
        let configured = self.source.configured(environment)?;
        let settings = configured.settings.clone();
        // Whoever starts a server for themselves needs no token.
        let auth = settings.auth.as_ref().filter(|_| !self.stdio);
        let opened = open_own(&settings, auth, environment, &[])?;
        let state = self.state.server_directory(settings.state_dir.clone());
        // Many clients start one process for each call, and none of them should wait for a disk at the start. A process
        // that has no directory, or one that cannot be used, pages as long as it runs.
        let (state, stdio_state) = match self.stdio {
            true => (None, state.ok().flatten()),
            false => (state?, None),
        };
        let timing = Timing { skew, valid_for: settings.cursor_ttl };
        let cursors = Arc::new(match (&state, stdio_state) {
            (Some(state), _) => Cursors::in_directory(state, timing)?,
            (None, Some(state)) => Cursors::lazily_in_directory(state, timing).map_err(StateError::from)?,
            (None, None) => Cursors::in_memory(timing).map_err(StateError::from)?,
        });
        let served = served(&settings, auth, environment, &opened, Arc::clone(&cursors))?;
        let telemetry = match &state {
            None => Telemetry::in_memory(settings.ring),
            Some(state) => Telemetry::in_directory(state, settings.ring),
        };
        let recorded = telemetry.clone();
        let encoded = telemetry.clone();
        cursors.observe_encoding(move |took| encoded.cursor_encoded(took));
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
            AuthMode::Unauthenticated(live) if self.stdio => {
                let server = Server::new(live, self.profile.into(), telemetry);
                runtime.block_on(serve_stdio(server, stop)).map_err(Failure::new)
            }
            served => {
                let addresses = Addresses {
                    main: self.listen.or(settings.listen).unwrap_or(DEFAULT_LISTEN),
                    ops: settings.ops_listen,
                };
                let site = site(&settings.http, served, telemetry, rate_limiter);
                runtime.block_on(serve_http(addresses, site, settings.http, stop))
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
    let refused = |problem: String| Failure::usage(&format!("{OTLP_ENDPOINT_VARIABLE}: {problem}"));
    let endpoint: OtlpEndpoint =
        text.parse().map_err(|error: InvalidOtlpEndpoint| refused(error.to_string()))?;
    if !endpoint.is_confidential() && !settings.allow_insecure_spans {
        return Err(refused(insecure_spans(&endpoint)));
    }
    Ok(Some(endpoint))
}

async fn stop_at_signal(stop: CancellationToken) {
    stop::requested().await;
    stop.cancel();
}

/// Returns what is served over HTTP.
fn site(http: &HttpSettings, served: AuthMode, telemetry: Telemetry, rate_limiter: RateLimiter) -> Site {
    Site {
        served,
        telemetry,
        rate_limiter,
        public_url: http.public_url.clone(),
        names: http.names(),
        proxies: http.trusted_proxies.clone(),
        unauthenticated_proxies: http.unauthenticated_proxies(),
        limits: http.limits(),
    }
}

/// The addresses to listen on.
struct Addresses {
    main: SocketAddr,
    /// The operations listener, where one is configured.
    ops: Option<SocketAddr>,
}

async fn serve_http(
    addresses: Addresses,
    site: Site,
    http: HttpSettings,
    stop: CancellationToken,
) -> Result<(), Failure> {
    let tls = http.tls.map(Tls::load).transpose()?;
    let guarded = match site.served {
        AuthMode::Unauthenticated(_) => Guarded::ByNobody,
        AuthMode::Authenticated(_) => Guarded::ByAuthentication,
    };
    let listener = bind(addresses.main, guarded).await?;
    let address = listener.local_addr().unwrap_or(addresses.main);
    let ops = match addresses.ops {
        None => None,
        Some(address) => Some(bind_ops(address).await?),
    };
    if let Some(address) = ops.as_ref().and_then(|listener| listener.local_addr().ok()) {
        note_ops(address);
    }
    if guarded == Guarded::ByNobody && http.allow_unauthenticated_proxy {
        print::note(
            &"http.allow_unauthenticated_proxy is set: everybody who reaches a trusted proxy can read every record",
        );
    }
    let scheme = if tls.is_some() { "https" } else { "http" };
    let public = http.public_url.map(|url| format!(", for clients at {url}")).unwrap_or_default();
    print::note(&format_args!(
        "fetchwell serves MCP at {scheme}://{address}/mcp (and /mcp/openai), records at /v1 and /api/v1{public}; stop it \
         with Ctrl-C"
    ));
    let serve_figures = async {
        match ops {
            None => Ok(()),
            Some(listener) => serve_ops(listener, site.clone(), stop.clone()).await,
        }
    };
    let served = tokio::try_join!(serve(listener, tls, site.clone(), stop.clone()), serve_figures);
    served.map(drop).map_err(|error| Failure::new(format!("the server stopped ({error})")))
}

/// Says that figures are served without a token, and who can read them.
fn note_ops(address: SocketAddr) {
    let readers = if address.ip().is_loopback() {
        "programs of this machine"
    } else {
        "everybody who reaches this address, other machines too,"
    };
    print::note(&format_args!(
        "/health and /metrics at {address} (ops_listen): {readers} can read them without a token"
    ));
}
