//! The client of a fake record server in the process of the test.

use std::time::Duration;

use fetchwell_pdpp::{Credentials, Pdpp, ProviderUrl};
use fetchwell_source::BoundSource;

use super::{CREDENTIAL, FakeServer, Reply, Request, connect};

/// A client of a fake record server.
pub(crate) struct Remote {
    pub(crate) pdpp: BoundSource,
    pub(crate) server: FakeServer,
    cache: tempfile::TempDir,
}

impl Remote {
    /// Starts a server with these answers, and a client of it.
    pub(crate) fn start(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let server = FakeServer::start(answer);
        let cache = tempfile::tempdir().unwrap();
        connect(cache.path(), &server.url, CREDENTIAL);
        let provider: ProviderUrl = server.url.parse().unwrap();
        let credentials = Credentials::new(&provider, cache.path());
        let pdpp =
            Pdpp::new("provider".parse().unwrap(), provider, credentials, Duration::from_secs(30)).into();
        Self { pdpp, server, cache }
    }

    /// Writes another credential, as `pdpp connect` would.
    pub(crate) fn reconnect(&self, credential: &str) {
        connect(self.cache.path(), &self.server.url, credential);
    }

    /// Returns the requests since the last call, decoded.
    pub(crate) fn asked(&self) -> Vec<String> {
        let decoded = |request: Request| {
            let line = request.line.trim_start_matches("GET ").to_owned();
            let url = url::Url::parse(&format!("http://x{line}")).unwrap();
            let params: Vec<String> =
                url.query_pairs().map(|(name, value)| format!("{name}={value}")).collect();
            format!("{}?{}", url.path(), params.join("&"))
        };
        self.server.requests().into_iter().map(decoded).collect()
    }
}
