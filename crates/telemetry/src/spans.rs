//! Export of calls as OpenTelemetry spans to a collector over HTTP (OTLP, protobuf).
//!
//! No call waits for the export or fails because of it: a span goes into a bounded queue and is dropped when that is
//! full. A separate thread with its own runtime sends batches to the collector. A collector that does not answer
//! causes a warning now and then. A span contains the fields of its call's log line, never the text of a query or a
//! result.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use fetchwell_core::saturate::saturated;
use fetchwell_outbound::{Exchange, is_confidential};
use opentelemetry::trace::{Span, SpanKind, Status, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracer, SdkTracerProvider,
};
use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};
use url::Url;

use super::{Outcome, TelemetryRecord, TraceParent};

/// Maximum number of queued spans.
const QUEUE: usize = 2_048;

/// Maximum number of spans in a batch.
const BATCH: usize = 512;

/// Delay before a batch that is not full is sent.
const PAUSE: Duration = Duration::from_secs(1);

/// Timeout of one batch.
const WITHIN: Duration = Duration::from_secs(5);

/// Maximum size of a collector's response in bytes.
const MAX_RESPONSE: usize = 64 * 1024;

/// Minimum time between two warnings that the collector does not accept spans.
const WARN_EVERY: Duration = Duration::from_secs(600);

/// The base URL of an OTLP collector, such as `http://127.0.0.1:4318`. Spans are sent to `/v1/traces` below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtlpEndpoint(Url);

/// The error for a text that is not a valid collector URL.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "write where the collector takes OTLP over HTTP, such as http://127.0.0.1:4318, without a user name or a query"
)]
pub struct InvalidOtlpEndpoint;

/// The reason why no spans can be sent.
#[derive(Debug, thiserror::Error)]
#[error("spans cannot be exported ({0})")]
pub struct SpanError(String);

impl FromStr for OtlpEndpoint {
    type Err = InvalidOtlpEndpoint;

    fn from_str(text: &str) -> Result<Self, InvalidOtlpEndpoint> {
        let url = Url::parse(text).map_err(|_unreadable| InvalidOtlpEndpoint)?;
        let is_plain = url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        let is_http = matches!(url.scheme(), "http" | "https") && url.has_host();
        if is_plain && is_http { Ok(Self(url)) } else { Err(InvalidOtlpEndpoint) }
    }
}

impl OtlpEndpoint {
    /// Returns true if no other machine can read what is sent to the URL: `https`, or `http` to a loopback address.
    #[must_use]
    pub fn is_confidential(&self) -> bool {
        is_confidential(&self.0)
    }

    fn traces(&self) -> String {
        format!("{}/v1/traces", self.0.as_str().trim_end_matches('/'))
    }
}

impl fmt::Display for OtlpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

/// The exporter of spans to a collector.
#[derive(Debug)]
pub struct Spans {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    /// Runtime of the export, or `None` after it was stopped.
    runtime: Mutex<Option<Runtime>>,
}

impl Spans {
    /// Starts the threads of the export.
    ///
    /// # Errors
    ///
    /// A thread cannot be started, or the client cannot be built.
    pub fn start(endpoint: &OtlpEndpoint) -> Result<Self, SpanError> {
        let threads = Builder::new_multi_thread().worker_threads(1).thread_name("spans").enable_all().build();
        let runtime = threads.map_err(|error| SpanError(error.to_string()))?;
        let collector = Collector {
            endpoint: endpoint.clone(),
            exchange: Exchange::new(&endpoint.0, WITHIN, MAX_RESPONSE).map_err(SpanError)?,
            handle: runtime.handle().clone(),
            trouble: Mutex::default(),
        };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(collector)
            // No retry: it would delay the queued spans, which are worth more than the lost batch.
            .with_retry_policy(RetryPolicy::disabled())
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(endpoint.traces())
            .with_timeout(WITHIN)
            .build()
            .map_err(|error| SpanError(error.to_string()))?;
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(QUEUE)
            .with_max_export_batch_size(BATCH)
            .with_scheduled_delay(PAUSE);
        let provider = SdkTracerProvider::builder()
            .with_span_processor(
                BatchSpanProcessor::builder(exporter).with_batch_config(batches.build()).build(),
            )
            // A caller that does not trace its call says so in `traceparent`.
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)))
            .with_resource(
                Resource::builder_empty()
                    .with_service_name("fetchwell")
                    .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
                    .build(),
            )
            .build();
        let tracer = provider.tracer("fetchwell");
        Ok(Self { provider, tracer, runtime: Mutex::new(Some(runtime)) })
    }

    /// Queues the span of a call that has ended.
    pub(crate) fn export(&self, record: &TelemetryRecord, parent: Option<TraceParent>) {
        let ended = SystemTime::from(record.timestamp);
        let took = Duration::from_micros(record.latency_us);
        let parent = parent
            .map_or_else(Context::new, |TraceParent(span)| Context::new().with_remote_span_context(span));
        let number = |number: u64| saturated::<i64>(number);
        let mut attributes = vec![
            KeyValue::new("request_id", record.request_id.to_string()),
            KeyValue::new("outcome", record.outcome.as_str()),
            KeyValue::new("response_bytes", number(record.response_bytes)),
            KeyValue::new("latency_us", number(record.latency_us)),
        ];
        attributes.extend(record.caller.map(|caller| KeyValue::new("caller", caller.short())));
        let mut span = self
            .tracer
            .span_builder(record.endpoint.to_string())
            .with_kind(SpanKind::Server)
            .with_start_time(ended.checked_sub(took).unwrap_or(ended))
            .with_attributes(attributes)
            .start_with_context(&self.tracer, &parent);
        if record.outcome != Outcome::OK && record.outcome != Outcome::CANCELLED {
            span.set_status(Status::error(record.outcome.as_str()));
        }
        span.end_with_timestamp(ended);
    }

    /// Sends the queued spans, for at most `timeout`, and stops the export.
    pub(crate) fn stop(&self, timeout: Duration) {
        let runtime = self.runtime.lock().take();
        if let Some(runtime) = runtime {
            // All failures have already been logged.
            let _ = self.provider.shutdown_with_timeout(timeout);
            runtime.shutdown_background();
        }
    }
}

impl Drop for Spans {
    fn drop(&mut self) {
        self.stop(Duration::ZERO);
    }
}

/// The HTTP client of the OpenTelemetry exporter, which uses the crate's own client.
#[derive(Debug)]
struct Collector {
    endpoint: OtlpEndpoint,
    exchange: Exchange,
    handle: Handle,
    /// Time of the last warning, while the collector does not accept spans.
    trouble: Mutex<Option<Instant>>,
}

#[async_trait]
impl HttpClient for Collector {
    /// Runs the request on the export's own runtime, because the exporter's thread has none.
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let exchange = self.exchange.clone();
        let sent = self.handle.spawn(async move { exchange.send(request).await }).await;
        let sent = sent.unwrap_or_else(|_stopped| Err("the server stops".to_owned()));
        match &sent {
            Ok(answer) if answer.status().is_success() => self.takes_spans(),
            Ok(answer) => self.takes_none(&format!("status {}", answer.status().as_u16())),
            Err(problem) => self.takes_none(problem),
        }
        Ok(sent?)
    }
}

impl Collector {
    fn takes_spans(&self) {
        if self.trouble.lock().take().is_some() {
            tracing::info!("the collector takes spans again");
        }
    }

    fn takes_none(&self, problem: &str) {
        let mut trouble = self.trouble.lock();
        if trouble.is_none_or(|last| last.elapsed() >= WARN_EVERY) {
            *trouble = Some(Instant::now());
            let endpoint = &self.endpoint;
            tracing::warn!(%endpoint, problem, "the collector takes no spans; they are lost until it does");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_plain_http_url() {
        for (text, expect) in [
            ("http://127.0.0.1:4318", Some("http://127.0.0.1:4318/v1/traces")),
            ("https://otel.example.com/in/", Some("https://otel.example.com/in/v1/traces")),
            ("127.0.0.1:4318", None),
            ("grpc://127.0.0.1:4317", None),
            ("http://ann:sekret@127.0.0.1:4318", None),
            ("http://127.0.0.1:4318/?key=sekret", None),
            ("", None),
        ] {
            let endpoint: Option<OtlpEndpoint> = text.parse().ok();
            assert_eq!(endpoint.map(|endpoint| endpoint.traces()).as_deref(), expect, "{text}");
        }
    }
}
