//! TLS without a proxy. A renewed certificate is loaded while the server runs.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

/// Maximum size of a file in bytes. A chain of ten certificates is about a tenth of it.
const MAX_FILE_BYTES: u64 = 256 * 1024;

/// Paths of the certificate and its private key.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsSettings {
    /// PEM file with the certificate of the server, followed by its intermediate certificates.
    pub certificate: PathBuf,
    /// PEM file with the private key.
    pub key: PathBuf,
}

impl TlsSettings {
    /// Reads certificate and key as a server does at its start.
    ///
    /// # Errors
    ///
    /// Returns an error if they cannot be read or used.
    pub fn check(&self) -> Result<(), TlsError> {
        read(self).map(drop)
    }

    /// Returns a warning with the remedy if other users can read or write the key. Access by the key's group is
    /// common (`ssl-cert`) and no reason for a warning.
    #[cfg(unix)]
    #[must_use]
    pub fn exposed_key_warning(&self) -> Option<String> {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(&self.key).ok()?.permissions().mode() & 0o777;
        let key = self.key.display();
        (mode & 0o006 != 0).then(|| {
            format!("every user of this machine can read or write the TLS key {key} (mode {mode:o}); run `chmod 600 {key}`")
        })
    }

    /// Returns `None`, because only Unix has file modes.
    #[cfg(not(unix))]
    #[must_use]
    pub fn exposed_key_warning(&self) -> Option<String> {
        None
    }

    fn warn_of_exposed_key(&self) {
        if let Some(warning) = self.exposed_key_warning() {
            tracing::warn!("{warning}");
        }
    }
}

/// Reason why TLS cannot be used. Never contains a part of a key.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("the {what} {} cannot be read ({problem}); check the path in [tls], and who may read it", .path.display())]
    Unreadable {
        /// Kind of the file: certificate or private key.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Message of the operating system.
        problem: String,
    },
    /// A file is not of the expected kind.
    #[error("{} holds no {what} in PEM; name in [tls] the file that begins with -----BEGIN {begins}", .path.display())]
    NotPem {
        /// Kind of the file: certificate or private key.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Label of the PEM block that is expected.
        begins: &'static str,
    },
    /// Certificate and key do not match, or are of an unsupported kind.
    #[error(
        "the certificate {} and the key {} cannot be used ({problem}); name a certificate and its own key in [tls]",
        .certificate.display(), .key.display()
    )]
    Unusable {
        /// Path of the certificate.
        certificate: PathBuf,
        /// Path of the private key.
        key: PathBuf,
        /// Description of the problem.
        problem: String,
    },
}

/// TLS configuration with the current certificate. Clones share it.
#[derive(Debug, Clone)]
pub struct Tls {
    settings: TlsSettings,
    current: Arc<ArcSwap<ServerConfig>>,
}

/// Modification time and length of a file, to detect changes.
type Stamp = Option<(SystemTime, u64)>;

impl Tls {
    /// Loads certificate and key.
    ///
    /// # Errors
    ///
    /// Returns an error if they cannot be read or used.
    pub fn load(settings: TlsSettings) -> Result<Self, TlsError> {
        let current = Arc::new(ArcSwap::new(read(&settings)?));
        settings.warn_of_exposed_key();
        Ok(Self { settings, current })
    }

    /// Loads both again. Keeps the current ones on an error.
    ///
    /// # Errors
    ///
    /// Returns an error if they cannot be read or used.
    pub fn renew(&self) -> Result<(), TlsError> {
        self.current.store(read(&self.settings)?);
        self.settings.warn_of_exposed_key();
        Ok(())
    }

    pub(crate) async fn accept(&self, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        TlsAcceptor::from(self.current.load_full()).accept(stream).await
    }

    /// Checks the files at an interval and loads changed ones, until `stop` is cancelled.
    pub(crate) async fn follow(self, every: Duration, stop: CancellationToken) {
        let mut seen = self.stamps();
        while stop.run_until_cancelled(tokio::time::sleep(every)).await.is_some() {
            let now = self.stamps();
            if now == seen {
                continue;
            }
            // If one of the files is written later than this, the next check loads both again.
            seen = now;
            match self.renew() {
                Ok(()) => tracing::info!("the certificate was renewed"),
                Err(error) => tracing::warn!("{error}; the certificate of before stays in use"),
            }
        }
    }

    fn stamps(&self) -> [Stamp; 2] {
        [&self.settings.certificate, &self.settings.key].map(|path| {
            let file = fs::metadata(path).ok()?;
            Some((file.modified().ok()?, file.len()))
        })
    }
}

fn read(settings: &TlsSettings) -> Result<Arc<ServerConfig>, TlsError> {
    let TlsSettings { certificate, key } = settings;
    let not_pem = |what, path: &Path, begins| TlsError::NotPem { what, path: path.to_owned(), begins };
    let bytes = read_file("certificate", certificate)?;
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<_, _>>()
        .map_err(|_broken| not_pem("certificate", certificate, "CERTIFICATE"))?;
    if chain.is_empty() {
        return Err(not_pem("certificate", certificate, "CERTIFICATE"));
    }
    let private = PrivateKeyDer::from_pem_slice(&read_file("key", key)?)
        .map_err(|_broken| not_pem("private key", key, "PRIVATE KEY"))?;
    let unusable = |error: rustls::Error| TlsError::Unusable {
        certificate: certificate.clone(),
        key: key.clone(),
        problem: error.to_string(),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(unusable)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn read_file(what: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    let unreadable = |problem: String| TlsError::Unreadable { what, path: path.to_owned(), problem };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| unreadable(error.to_string()))?;
    // Reading a pipe could block forever.
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err(unreadable("it is not a regular file".to_owned()));
    }
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|error| unreadable(error.to_string()))?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= MAX_FILE_BYTES => Ok(bytes),
        _ => Err(unreadable(format!("it is larger than {MAX_FILE_BYTES} bytes"))),
    }
}
