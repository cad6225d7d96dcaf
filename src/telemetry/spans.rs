//! Calls as spans of OpenTelemetry, sent to a collector over HTTP (OTLP, protobuf).
//!
//! No call waits for it or fails by it: a span goes into a bounded queue, and is lost when that is full. A thread of its
//! own takes batches to the collector, through a runtime of its own; a collector that does not answer costs a warning
//! now and then. A span has what the log line of its call has, and nothing of what was asked or found.

use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use opentelemetry::trace::{Span, SpanKind, Status, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracer, SdkTracerProvider,
};
use tokio::runtime::{Builder, Handle, Runtime};
use url::Url;

use super::{Outcome, TelemetryRecord, TraceParent};
use crate::outbound::{Exchange, is_confidential};

/// Spans that may wait.
const QUEUE: usize = 2_048;

/// Spans that go at once.
const BATCH: usize = 512;

/// Between two batches that are not full.
const PAUSE: Duration = Duration::from_secs(1);

/// How long a collector may take for a batch.
const WITHIN: Duration = Duration::from_secs(5);

/// The largest answer of a collector that is read.
const ANSWER_MOST: usize = 64 * 1024;

/// Between two warnings that the collector does not take spans.
const WARN_EVERY: Duration = Duration::from_secs(600);

/// Where a collector takes OTLP over HTTP, such as `http://127.0.0.1:4318`; spans go to `/v1/traces` below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtlpEndpoint(Url);

/// A text that is no place for spans.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "write where the collector takes OTLP over HTTP, such as http://127.0.0.1:4318, without a user name or a query"
)]
pub struct InvalidOtlpEndpoint;

/// Why no spans can be sent.
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
    /// Returns whether no other machine can read what is sent there: it is `https`, or `http` for a loopback address.
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

/// The way of spans to a collector.
#[derive(Debug)]
pub struct Spans {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    /// Gone once it was stopped.
    runtime: Mutex<Option<Runtime>>,
}

impl Spans {
    /// Starts the threads that send them.
    ///
    /// # Errors
    ///
    /// The system gives no threads.
    pub fn start(endpoint: &OtlpEndpoint) -> Result<Self, SpanError> {
        let threads = Builder::new_multi_thread().worker_threads(1).thread_name("spans").enable_all().build();
        let runtime = threads.map_err(|error| SpanError(error.to_string()))?;
        let collector = Collector {
            endpoint: endpoint.clone(),
            exchange: Exchange::new(&endpoint.0, WITHIN, ANSWER_MOST).map_err(SpanError)?,
            handle: runtime.handle().clone(),
            trouble: Mutex::default(),
        };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(collector)
            // A batch that is lost is worth less than the queue behind it.
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
            // A caller that does not trace its call says so in its `traceparent`.
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

    /// Puts a call that has ended into the queue.
    pub(super) fn export(&self, record: &TelemetryRecord, parent: Option<TraceParent>) {
        let ended = SystemTime::from(record.timestamp);
        let took = Duration::from_micros(record.latency_us);
        let parent = parent
            .map_or_else(Context::new, |TraceParent(span)| Context::new().with_remote_span_context(span));
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
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

    /// Sends what waits, for `most` at the longest, and no more after it.
    pub(super) fn stop(&self, most: Duration) {
        let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(runtime) = runtime {
            // Whatever goes wrong now has been warned of.
            let _ = self.provider.shutdown_with_timeout(most);
            runtime.shutdown_background();
        }
    }
}

impl Drop for Spans {
    fn drop(&mut self) {
        self.stop(Duration::ZERO);
    }
}

/// The client of the exporter, by ours.
#[derive(Debug)]
struct Collector {
    endpoint: OtlpEndpoint,
    exchange: Exchange,
    handle: Handle,
    /// When its last warning was, while it takes no spans.
    trouble: Mutex<Option<Instant>>,
}

#[async_trait]
impl HttpClient for Collector {
    /// The exporter's thread waits for it, outside of any runtime.
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
        if self.trouble.lock().unwrap_or_else(PoisonError::into_inner).take().is_some() {
            tracing::info!("the collector takes spans again");
        }
    }

    fn takes_none(&self, problem: &str) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
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
    fn an_endpoint_is_the_place_of_a_collector() {
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
