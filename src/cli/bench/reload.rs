//! `fetchwell bench reload`: configuration reloads of a demo server under load.
//!
//! Clients call `search` over HTTP without a pause, as bytes on a socket, because the program has an HTTP client for
//! remote sources only.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fetchwell_core::saturate::saturated;
use fetchwell_http::{AuthMode, CallerCheck, RateLimiter, Site, bind, serve};
use fetchwell_state::StateError;
use fetchwell_state::cursor::{Cursors, Skew};
use fetchwell_telemetry::Telemetry;
use fetchwell_tools::{SharedToolbox, Toolbox};
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::times::percentile;
use crate::app::background::{BackgroundBuilds, StoreMaintenance};
use crate::app::callers::{OpenServers, SignInStorage};
use crate::app::failure::Failure;
use crate::app::imports::BackgroundImports;
use crate::app::open::{AS_IT_IS, joined, open_sources};
use crate::app::reload::Reload;
use crate::app::settings::{PlaceArgs, SourceArgs};
use crate::cli::demo::import_mail;
use crate::cli::print::{Printer, grouped};
use crate::config::{DEFAULT_CACHE_ROOT, Environment, WatchHandle};

/// Number of changes of the file, alternately in place and by rename.
const CHANGES: usize = 200;

/// Number of clients that call continuously.
const CLIENTS: usize = 4;

/// Pause between two changes, so that calls begin and end in it.
const PAUSE: Duration = Duration::from_millis(10);

/// Interval at which the benchmark checks whether a change is in use.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Timeout after which a change counts as missed.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(10);

/// Body of a call.
const BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"query":"invoice"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-06-18"}}}"#;

#[derive(Debug, Serialize)]
pub(super) struct ReloadTimes {
    changes: usize,
    /// Changes that were not in use in time.
    missed: usize,
    p50_us: u64,
    p99_us: u64,
    max_us: u64,
    calls: u64,
    failed_calls: u64,
}

/// Counters of the clients.
#[derive(Debug, Default)]
struct Calls {
    made: AtomicU64,
    failed: AtomicU64,
}

/// Server under test.
struct Server {
    toolbox: SharedToolbox,
    address: SocketAddr,
    stop: CancellationToken,
    _watching: WatchHandle,
}

pub(super) fn run(printer: Printer) -> Result<(), Failure> {
    let measured = measure()?;
    if printer.json {
        printer.value(&measured);
    } else {
        measured.print(printer);
    }
    measured.check()
}

pub(super) fn measure() -> Result<ReloadTimes, Failure> {
    let folder = tempfile::tempdir().map_err(|error| failed("no temporary folder", &error))?;
    let file = folder.path().join("fetchwell.toml");
    import_mail(&folder.path().join("demo.db"))?;
    write(&file, 1, false)?;
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| failed("no threads", &error))?;
    let server = start(&file, &runtime)?;
    let calls = Arc::new(Calls::default());
    let ended = CancellationToken::new();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| runtime.spawn(call_until(server.address, Arc::clone(&calls), ended.clone())))
        .collect();
    let taken = runtime.block_on(change(&server.toolbox, &file));
    ended.cancel();
    for client in clients {
        // A client that failed has counted its failure.
        let _ = runtime.block_on(client);
    }
    server.stop.cancel();
    Ok(measured(taken?, &calls))
}

/// Starts the parts of `serve` in the same way as that command.
fn start(file: &Path, runtime: &Runtime) -> Result<Server, Failure> {
    let place = PlaceArgs { store: None, provider_url: None };
    let arguments = SourceArgs {
        place,
        config: Some(file.to_owned()),
        found_config: None,
        cache_root: DEFAULT_CACHE_ROOT.into(),
    };
    let environment = Environment::default();
    let configured = arguments.configured(&environment)?;
    let settings = configured.settings.clone();
    let opened = open_sources(&settings, &environment, AS_IT_IS)?;
    let source = joined(opened.clone(), settings.call_deadline)?;
    let cursors = Arc::new(Cursors::in_memory(Skew::default()).map_err(StateError::from)?);
    let toolbox = Toolbox::with_cursors(source, Arc::clone(&cursors), settings.call_deadline);
    let toolbox = SharedToolbox::new(toolbox);
    let rate_limiter = RateLimiter::default();
    let stop = CancellationToken::new();
    let listener = runtime.block_on(bind(SocketAddr::from(([127, 0, 0, 1], 0)), CallerCheck::ByNobody))?;
    let address = listener.local_addr().map_err(|error| failed("no address", &error))?;
    let site = Site::of_this_machine(toolbox.clone(), Telemetry::default(), rate_limiter.clone());
    let site_configuration = site.configuration.clone();
    runtime.spawn(serve(listener, None, site, stop.clone()));
    let telemetry = Telemetry::default();
    let reload = Reload {
        configured,
        background: BackgroundBuilds::new(environment.clone(), telemetry.clone(), stop.clone()),
        maintenance: StoreMaintenance::new(environment.clone(), stop.clone()),
        imports: BackgroundImports::new(environment.clone(), telemetry.clone(), stop.clone()),
        sign_ins: SignInStorage { cursors, directory: None, open: OpenServers::default() },
        environment,
        opened,
        served: AuthMode::Unauthenticated(toolbox.clone()),
        rate_limiter,
        telemetry,
        configuration: site_configuration,
    };
    let watching = reload.follow(runtime.handle().clone());
    let watching = watching.ok_or_else(|| Failure::new("the system does not report changes"))?;
    Ok(Server { toolbox, address, stop, _watching: watching })
}

/// Writes the file with a threshold, in place or by rename.
fn write(file: &Path, threshold: usize, in_place: bool) -> Result<(), Failure> {
    let text = format!(
        "[[source]]\nname = \"demo\"\nstore = \"demo.db\"\n\n[context_protection]\noutput_token_threshold = {threshold}\n"
    );
    let written = if in_place {
        std::fs::write(file, text)
    } else {
        let fresh = file.with_extension("new");
        std::fs::write(&fresh, text).and_then(|()| std::fs::rename(&fresh, file))
    };
    written.map_err(|error| failed("the configuration cannot be written", &error))
}

/// Changes the file repeatedly. Returns the time of each change except missed ones.
async fn change(toolbox: &SharedToolbox, file: &Path) -> Result<Vec<Duration>, Failure> {
    let mut taken = Vec::with_capacity(CHANGES);
    for number in 0..CHANGES {
        let threshold = 2_000 + number;
        sleep(PAUSE).await;
        let started = Instant::now();
        write(file, threshold, number % 2 == 0)?;
        while toolbox.now().protection().global.threshold != threshold && started.elapsed() < CHANGE_TIMEOUT {
            sleep(POLL_INTERVAL).await;
        }
        if started.elapsed() < CHANGE_TIMEOUT {
            taken.push(started.elapsed());
        }
    }
    Ok(taken)
}

async fn call_until(address: SocketAddr, calls: Arc<Calls>, ended: CancellationToken) {
    while !ended.is_cancelled() {
        let is_answered = call(address).await.unwrap_or(false);
        calls.made.fetch_add(1, Ordering::Relaxed);
        calls.failed.fetch_add(u64::from(!is_answered), Ordering::Relaxed);
    }
}

/// Makes a call. Returns true if the answer has results.
async fn call(address: SocketAddr) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(address).await?;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         mcp-protocol-version: 2025-06-18\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        BODY.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(BODY.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer);
    Ok(answer.starts_with("HTTP/1.1 200")
        && answer.contains("\"results\"")
        && !answer.contains("\"isError\":true"))
}

fn measured(mut taken: Vec<Duration>, calls: &Calls) -> ReloadTimes {
    taken.sort_unstable();
    let micros = |duration: Duration| saturated::<u64>(duration.as_micros());
    ReloadTimes {
        changes: CHANGES,
        missed: CHANGES - taken.len(),
        p50_us: micros(percentile(&taken, 50)),
        p99_us: micros(percentile(&taken, 99)),
        max_us: micros(taken.last().copied().unwrap_or_default()),
        calls: calls.made.load(Ordering::Relaxed),
        failed_calls: calls.failed.load(Ordering::Relaxed),
    }
}

impl ReloadTimes {
    pub(super) fn print(&self, printer: Printer) {
        let Self { changes, missed, p50_us, p99_us, max_us, calls, failed_calls } = self;
        printer.line(format_args!(
            "reload  p50 {} us  p99 {} us  longest {} us  of {changes} changes, {missed} missed",
            grouped(*p50_us),
            grouped(*p99_us),
            grouped(*max_us)
        ));
        printer.line(format_args!("{} calls meanwhile, {failed_calls} failed", grouped(*calls)));
    }

    /// Checks that every change was in use and every call was answered.
    pub(super) fn check(&self) -> Result<(), Failure> {
        match (self.failed_calls, self.missed) {
            (0, 0) if self.calls > 0 => Ok(()),
            (0, 0) => Err(Failure::new("no call was made")),
            (failed, missed) => {
                Err(Failure::new(format!("{failed} calls failed, {missed} changes were missed")))
            }
        }
    }
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("{what} ({error})"))
}
