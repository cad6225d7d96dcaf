//! Encryption of the connection to a `rediss://` URL, by rustls. The certificate must be of a known authority and for
//! the host.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::error::RedisError;
use super::url::RedisUrl;

/// Maximum time of a handshake, within the second of opening a connection.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_millis(800);

/// Encryption of the connections to one server.
#[derive(Clone)]
pub(super) struct RedisTls {
    connector: TlsConnector,
    server: String,
    host: ServerName<'static>,
}

impl RedisTls {
    /// Prepares the encryption that a URL asks for; returns `None` for a URL without encryption.
    ///
    /// # Errors
    ///
    /// The certificates of the authorities cannot be read, or the host has no valid name.
    pub(super) fn new(url: &RedisUrl) -> Result<Option<Self>, RedisError> {
        if !url.is_encrypted {
            return Ok(None);
        }
        let secret = |problem: String| RedisError::Secret { server: url.to_string(), problem };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = match &url.authorities {
            None => RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() },
            Some(path) => {
                let unreadable = || secret(format!("`ca` {} has no certificate", path.display()));
                let mut roots = RootCertStore::empty();
                for certificate in CertificateDer::pem_file_iter(path).map_err(|_error| unreadable())? {
                    let certificate = certificate.map_err(|_error| unreadable())?;
                    roots.add(certificate).map_err(|_error| unreadable())?;
                }
                if roots.is_empty() {
                    return Err(unreadable());
                }
                roots
            }
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| secret(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let host = ServerName::try_from(url.host.clone());
        let host = host.map_err(|_invalid| secret("its host is no valid name".to_owned()))?;
        Ok(Some(Self { connector: TlsConnector::from(Arc::new(config)), server: url.to_string(), host }))
    }

    /// Encrypts a connection.
    pub(super) async fn encrypt(&self, stream: TcpStream) -> Result<TlsStream<TcpStream>, RedisError> {
        let failed = |problem: String| RedisError::Tls { server: self.server.clone(), problem };
        // A server without TLS waits for the rest of a line, and never answers.
        match timeout(HANDSHAKE_TIMEOUT, self.connector.connect(self.host.clone(), stream)).await {
            Ok(encrypted) => encrypted.map_err(|error| failed(error.to_string())),
            Err(_elapsed) => {
                Err(failed("no answer to the TLS handshake; the port may have no TLS".to_owned()))
            }
        }
    }
}
