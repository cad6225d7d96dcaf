//! Assembly of a server: sources, cursors, telemetry and limits by the settings, and its end.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fetchwell_core::terminal::note;
use fetchwell_http::{
    AuthMode, CallerCheck, CurrentConfiguration, DEFAULT_LISTEN, PublicUrl, RateLimiter, Site, Tls, bind,
    bind_ops, serve, serve_ops,
};
use fetchwell_mcp::{Server, serve_stdio};
use fetchwell_state::StateError;
use fetchwell_state::cursor::{Cursors, LatestKeyMismatch, Skew, StatePlace, Timing};
use fetchwell_state::redis::RedisState;
use fetchwell_telemetry::{AuditLog, InvalidOtlpEndpoint, OtlpEndpoint, Spans, Telemetry};
use fetchwell_tools::Profile;
use jiff::tz::TimeZone;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use super::auth_mode::{open_own, served};
use super::background::{BackgroundBuilds, StoreMaintenance, follow_shared_keys, log_pgvector};
use super::callers::{OpenServers, SignInStorage};
use super::embedding::check_dimensions_at_start;
use super::failure::Failure;
use super::imports::BackgroundImports;
use super::reload::Reload;
use super::settings::ConfiguredSettings;
use super::state::{SharedStateArgs, StateArgs};
use super::{circuits, stop};
use crate::config::{AuditSettings, Environment, FileSettings, OTLP_ENDPOINT_VARIABLE, insecure_spans};

/// The transport of a server.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Transport {
    /// Standard input and output, for one client with the tools of a profile.
    Stdio(Profile),
    /// HTTP, at an address of the command line or else of the configuration.
    Http { listen: Option<SocketAddr> },
}

/// Flags for the state of a server.
#[derive(Debug)]
pub(crate) struct ServerState {
    pub(crate) directory: StateArgs,
    pub(crate) shared: SharedStateArgs,
}

/// Maximum time that blocked threads delay the end of the program.
const LAST_WAIT: Duration = Duration::from_millis(100);

/// Maximum time for writing the positions of the last cursors, and the records of the last calls.
const LAST_WRITE: Duration = Duration::from_secs(1);

/// Maximum time for sending the last spans.
const LAST_SPANS: Duration = Duration::from_secs(2);

const STATE_WITHOUT_DIRECTORY: &str = "shared state needs a state directory for its keys; name one with --state-dir, with the same \
                                       cursor-keys.json and change-key.json on each server";

impl Transport {
    /// Returns the time zone of callers. The client of a stdio server is on the same machine.
    fn time_zone(&self) -> TimeZone {
        if matches!(self, Self::Stdio(_)) { TimeZone::system() } else { TimeZone::UTC }
    }
}

/// Runs a server until it is stopped.
pub(crate) fn run_server(
    configured: ConfiguredSettings,
    environment: &Environment,
    state: ServerState,
    transport: Transport,
    skew: Skew,
) -> Result<(), Failure> {
    let settings = configured.settings.clone();
    let ServerState { directory: state, shared } = state;
    let redis = shared.open(settings.state.as_ref(), environment)?;
    let is_stdio = matches!(transport, Transport::Stdio(_));
    // Over stdio the client started the server itself, and needs no token.
    let auth = settings.auth.as_ref().filter(|_| !is_stdio);
    check_dimensions_at_start(&settings)?;
    let opened = open_own(&settings, auth, environment, &[])?;
    let state = state.server_directory(settings.state_dir.clone());
    // Many clients start one process for each call, and none of them should wait for a disk at the start. A process
    // that has no directory, or one that cannot be used, pages as long as it runs.
    let (state, stdio_state) = if is_stdio { (None, state.ok().flatten()) } else { (state?, None) };
    let timing = Timing { skew, valid_for: settings.cursor_ttl };
    let cursors = Arc::new(open_cursors(state.as_deref(), stdio_state, redis.as_ref(), timing)?);
    let (directory, open) = (state.clone(), OpenServers::default());
    let sign_ins = SignInStorage { cursors: Arc::clone(&cursors), directory, open };
    let served = served(&settings, auth, environment, &opened, sign_ins.clone(), transport.time_zone())?;
    let telemetry = start_telemetry(state.as_deref(), &settings, environment)?;
    let recorded = telemetry.clone();
    let encoded = telemetry.clone();
    cursors.observe_encoding(move |took| encoded.cursor_encoded(took));
    let configuration = configuration(&configured);
    let rate_limiter = RateLimiter::new(redis.clone());
    rate_limiter.replace(settings.rate_limit);
    let runtime = start_runtime(is_stdio)?;
    let stop = CancellationToken::new();
    cancel_at_signal(&runtime, stop.clone());
    let key_mismatch = LatestKeyMismatch::default();
    if redis.is_some() && !is_stdio {
        runtime.spawn(follow_shared_keys(Arc::clone(&cursors), key_mismatch.clone(), stop.clone()));
    }
    if let Some(state) = state {
        runtime.spawn(circuits::report(served.clone(), state, stop.clone()));
    }
    runtime.spawn(log_pgvector(settings.clone(), environment.clone()));
    let (background, maintenance, imports) = start_background(environment, &telemetry, &stop, &settings);
    let reload = Reload {
        configured,
        environment: environment.clone(),
        opened,
        served: served.clone(),
        rate_limiter: rate_limiter.clone(),
        telemetry: telemetry.clone(),
        background,
        maintenance,
        imports,
        sign_ins,
        configuration: configuration.clone(),
    };
    let _watching = reload.follow(runtime.handle().clone());
    let ended = match (transport, served) {
        (Transport::Stdio(profile), AuthMode::Unauthenticated(toolbox)) => {
            let server = Server::new(toolbox, profile, telemetry);
            runtime.block_on(serve_stdio(server, stop)).map_err(Failure::new)
        }
        (Transport::Stdio(_), AuthMode::Authenticated(_)) => {
            Err(Failure::new("a stdio server has no callers to authenticate"))
        }
        (Transport::Http { listen }, served) => {
            let addresses = Addresses {
                main: listen.or(settings.listen).unwrap_or(DEFAULT_LISTEN),
                ops: settings.ops_listen,
            };
            let mut site = site(&settings, served, telemetry, rate_limiter);
            (site.state, site.key_mismatch, site.configuration) = (redis, key_mismatch, configuration);
            runtime.block_on(serve_http(addresses, site, &settings, stop))
        }
    };
    runtime.block_on(cursors.flush(LAST_WRITE));
    // A read of standard input cannot be cancelled; the program ends without it.
    runtime.shutdown_timeout(LAST_WAIT);
    recorded.flush(LAST_WRITE);
    recorded.stop_exporting(LAST_SPANS);
    ended
}

/// Returns the configuration as operators see it.
fn configuration(configured: &ConfiguredSettings) -> CurrentConfiguration {
    let configuration = CurrentConfiguration::default();
    if let Some(file) = &configured.file {
        configuration.replace(configured.view(&file.text));
    }
    configuration
}

/// Starts the threads of a server. A stdio server has one client.
fn start_runtime(is_stdio: bool) -> Result<Runtime, Failure> {
    fetchwell_heap::return_freed_memory();
    let threads = if is_stdio { 1 } else { std::thread::available_parallelism().map_or(2, usize::from) };
    let runtime = Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    runtime.map_err(|error| Failure::new(format!("threads cannot be started ({error})")))
}

/// Opens the cursors of a server: at once in its state directory, at the first use in that of a stdio server.
fn open_cursors(
    state: Option<&Path>,
    stdio_state: Option<PathBuf>,
    redis: Option<&RedisState>,
    timing: Timing,
) -> Result<Cursors, Failure> {
    let place = |directory: PathBuf| StatePlace { directory, redis: redis.cloned() };
    Ok(match (state, stdio_state) {
        (Some(state), _) => Cursors::in_directory(place(state.to_owned()), timing)?,
        (None, Some(state)) => {
            Cursors::lazily_in_directory(place(state), timing).map_err(StateError::from)?
        }
        (None, None) if redis.is_some() => return Err(Failure::usage(&STATE_WITHOUT_DIRECTORY)),
        (None, None) => Cursors::in_memory(timing).map_err(StateError::from)?,
    })
}

/// Starts the builds of vectors, the maintenance of stores and the imports of a configuration.
fn start_background(
    environment: &Environment,
    telemetry: &Telemetry,
    stop: &CancellationToken,
    settings: &FileSettings,
) -> (BackgroundBuilds, StoreMaintenance, BackgroundImports) {
    let background = BackgroundBuilds::new(environment.clone(), telemetry.clone(), stop.clone());
    background.follow(settings);
    let maintenance = StoreMaintenance::new(environment.clone(), stop.clone());
    maintenance.follow(settings);
    let imports = BackgroundImports::new(environment.clone(), telemetry.clone(), stop.clone());
    imports.follow(settings);
    (background, maintenance, imports)
}

/// Creates the recorder of calls, in memory or in a state directory. Adds the configured spans and audit log.
fn start_telemetry(
    state: Option<&Path>,
    settings: &FileSettings,
    environment: &Environment,
) -> Result<Telemetry, Failure> {
    let telemetry = match state {
        None => Telemetry::in_memory(settings.telemetry.ring),
        Some(state) => Telemetry::in_directory(state, settings.telemetry.ring),
    };
    if let Some(endpoint) = otlp_endpoint(environment, settings)? {
        let spans = Spans::start(&endpoint).map_err(|error| Failure::new(error.to_string()))?;
        telemetry.export_to(spans);
    }
    if let Some(AuditSettings { path }) = &settings.audit {
        telemetry.audit_to(AuditLog::start(path).map_err(|error| Failure::usage(&error))?);
    }
    Ok(telemetry)
}

/// Returns the endpoint for spans: that of the environment, otherwise that of the file.
fn otlp_endpoint(
    environment: &Environment,
    settings: &FileSettings,
) -> Result<Option<OtlpEndpoint>, Failure> {
    let Some(text) = &environment.otlp_endpoint else { return Ok(settings.telemetry.otlp_endpoint.clone()) };
    let refused = |problem: String| Failure::usage(&format!("{OTLP_ENDPOINT_VARIABLE}: {problem}"));
    let endpoint: OtlpEndpoint =
        text.parse().map_err(|error: InvalidOtlpEndpoint| refused(error.to_string()))?;
    if !endpoint.is_confidential() && !settings.telemetry.allow_insecure {
        return Err(refused(insecure_spans(&endpoint)));
    }
    Ok(Some(endpoint))
}

/// Cancels a token at a signal to stop. A signal after this call is not lost: a server may be stopped as soon as it says
/// where it listens.
fn cancel_at_signal(runtime: &Runtime, stop: CancellationToken) {
    let _entered = runtime.enter();
    let requested = stop::requested();
    runtime.spawn(async move {
        requested.await;
        stop.cancel();
    });
}

/// Returns the site that is served over HTTP.
fn site(settings: &FileSettings, served: AuthMode, telemetry: Telemetry, rate_limiter: RateLimiter) -> Site {
    let http = &settings.http;
    Site {
        served,
        telemetry,
        rate_limiter,
        state: None,
        key_mismatch: LatestKeyMismatch::default(),
        configuration: CurrentConfiguration::default(),
        public_url: settings.public_url.clone(),
        names: http.names(settings.public_url.as_ref()),
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
    settings: &FileSettings,
    stop: CancellationToken,
) -> Result<(), Failure> {
    let tls = settings.tls.clone().map(Tls::load).transpose()?;
    let guarded = match site.served {
        AuthMode::Unauthenticated(_) => CallerCheck::ByNobody,
        AuthMode::Authenticated(_) => CallerCheck::ByAuthentication,
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
    if guarded == CallerCheck::ByNobody && settings.http.allow_unauthenticated_proxy {
        note(
            &"http.allow_unauthenticated_proxy is set: everyone who reaches a trusted proxy can read every record",
        );
    }
    let origin = format!("{}://{address}", if tls.is_some() { "https" } else { "http" });
    note_start(&origin, guarded, settings.public_url.as_ref());
    let serve_figures = async {
        match ops {
            None => Ok(()),
            Some(listener) => serve_ops(listener, site.clone(), stop.clone()).await,
        }
    };
    let served = tokio::try_join!(serve(listener, tls, site.clone(), stop.clone()), serve_figures);
    served.map(drop).map_err(|error| Failure::new(format!("the server stopped ({error})")))
}

/// Notes the addresses of a server that listens at `origin`. Its pages need a public URL if callers authenticate.
fn note_start(origin: &str, guarded: CallerCheck, public_url: Option<&PublicUrl>) {
    let public = public_url.map(|url| format!(", for clients at {url}")).unwrap_or_default();
    let page = match (guarded, public_url) {
        (CallerCheck::ByNobody, _) => format!(", and a search page at {origin}/"),
        (CallerCheck::ByAuthentication, Some(url)) => format!(", and a search page at {}", url.at("/")),
        (CallerCheck::ByAuthentication, None) => String::new(),
    };
    note(&format_args!(
        "fetchwell serves MCP at {origin}/mcp (and /mcp/openai, /mcp/docs), records at /v1 and /api/v1{public}{page}; stop it with \
         Ctrl-C"
    ));
}

/// Notes that metrics are served without a token, and who can read them.
fn note_ops(address: SocketAddr) {
    let readers = if address.ip().is_loopback() {
        "programs on this machine"
    } else {
        "everyone who reaches this address, including other machines,"
    };
    note(&format_args!(
        "/health and /metrics at {address} (ops_listen): {readers} can read them without a token"
    ));
}
