//! Where a call came from: which request it is, by whose grant, and in which trace. All of it is read off the request by
//! whoever answers it, and none of it is text that a caller wrote at will.

use http::{Extensions, HeaderMap};
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{SpanContext, TraceContextExt, TraceState};
use opentelemetry_sdk::propagation::TraceContextPropagator;

use super::RequestId;
use crate::access::GrantId;

/// Where a call came from.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// What its caller called it.
    pub(super) request_id: Option<RequestId>,
    /// By whose grant; nothing where callers are not told apart.
    pub(super) caller: Option<GrantId>,
    /// The span that it is a part of.
    pub(super) parent: Option<TraceParent>,
}

/// A span of a caller, by `traceparent` (W3C Trace Context). `tracestate` is not read: it has text of others.
#[derive(Debug, Clone)]
pub struct TraceParent(pub(super) SpanContext);

impl Origin {
    /// That of an HTTP request, as its middleware left it among the extensions.
    #[must_use]
    pub fn of(extensions: &Extensions) -> Self {
        Self {
            request_id: extensions.get::<RequestId>().cloned(),
            caller: extensions.get::<GrantId>().copied(),
            parent: extensions.get::<TraceParent>().cloned(),
        }
    }

    /// A request that its caller named, if the name is one that can be logged and echoed.
    #[must_use]
    pub fn named(request_id: &str) -> Self {
        Self { request_id: RequestId::of_caller(request_id.to_owned()), ..Self::default() }
    }

    /// The same, by this grant.
    #[must_use]
    pub fn by(self, caller: GrantId) -> Self {
        Self { caller: Some(caller), ..self }
    }
}

impl TraceParent {
    /// The span that the headers of a request speak of.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let text = headers.get(HEADER)?.to_str().ok()?;
        let context = TraceContextPropagator::new().extract(&Only(text));
        let span = context.span().span_context().clone();
        let (trace, id, flags) = (span.trace_id(), span.span_id(), span.trace_flags());
        span.is_valid().then(|| Self(SpanContext::new(trace, id, flags, true, TraceState::default())))
    }
}

const HEADER: &str = "traceparent";

/// That one header.
struct Only<'a>(&'a str);

impl Extractor for Only<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        (key == HEADER).then_some(self.0)
    }

    fn keys(&self) -> Vec<&str> {
        vec![HEADER]
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn parent(text: &'static str) -> Option<String> {
        let headers = HeaderMap::from_iter([
            (http::HeaderName::from_static(HEADER), HeaderValue::from_static(text)),
            (http::HeaderName::from_static("tracestate"), HeaderValue::from_static("vendor=secret")),
        ]);
        let TraceParent(span) = TraceParent::of(&headers)?;
        assert_eq!(span.trace_state().header(), "");
        Some(format!("{}/{}/{}", span.trace_id(), span.span_id(), span.is_sampled()))
    }

    #[test]
    fn a_span_is_taken_over_and_what_is_none_is_left() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(parent(good).unwrap(), "0af7651916cd43dd8448eb211c80319c/b7ad6b7169203331/true");
        for bad in [
            "",
            "00",
            "nonsense",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert_eq!(parent(bad), None, "{bad}");
        }
        assert!(TraceParent::of(&HeaderMap::new()).is_none());
    }
}
