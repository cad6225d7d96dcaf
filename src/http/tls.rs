//! TLS of our own, where no proxy does it. A renewed certificate is taken up while the server runs.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

/// The largest file of either kind, in bytes. A chain of ten certificates is about a tenth of it.
const BYTES_MOST: u64 = 256 * 1024;

/// Where the certificate and its key are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSettings {
    /// A PEM file: the certificate of the server first, then those above it.
    pub certificate: PathBuf,
    /// A PEM file with its private key.
    pub key: PathBuf,
}

impl TlsSettings {
    /// Returns a warning with the remedy when users outside of the key's owner and group can read or write the key. A group
    /// that may read it is usual (`ssl-cert`).
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

    /// Returns nothing: only Unix has such modes.
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

/// Why there can be no TLS. Nothing of a key is in it.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("the {what} {} cannot be read ({problem}); check the path in [tls], and who may read it", .path.display())]
    Unreadable {
        /// The certificate or its key.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        problem: String,
    },
    /// A file is something else.
    #[error("{} holds no {what} in PEM; name in [tls] the file that begins with -----BEGIN {begins}", .path.display())]
    NotPem {
        /// The certificate or its key.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// How it would begin.
        begins: &'static str,
    },
    /// They do not go together, or are of a kind that is not known.
    #[error(
        "the certificate {} and the key {} cannot be used ({problem}); name a certificate and its own key in [tls]",
        .certificate.display(), .key.display()
    )]
    Unusable {
        /// The file of the certificate.
        certificate: PathBuf,
        /// That of the key.
        key: PathBuf,
        /// What is wrong with them.
        problem: String,
    },
}

/// TLS with the certificate of now.
#[derive(Debug, Clone)]
pub struct Tls {
    settings: TlsSettings,
    current: Arc<ArcSwap<ServerConfig>>,
}

/// By what a file is known to be another one.
type Stamp = Option<(SystemTime, u64)>;

impl Tls {
    /// Reads certificate and key.
    ///
    /// # Errors
    ///
    /// They cannot be read, or not be used.
    pub fn load(settings: TlsSettings) -> Result<Self, TlsError> {
        let current = Arc::new(ArcSwap::new(read(&settings)?));
        settings.warn_of_exposed_key();
        Ok(Self { settings, current })
    }

    /// Reads both again. One that is not good changes nothing.
    ///
    /// # Errors
    ///
    /// They cannot be read, or not be used.
    pub fn renew(&self) -> Result<(), TlsError> {
        self.current.store(read(&self.settings)?);
        self.settings.warn_of_exposed_key();
        Ok(())
    }

    pub(super) async fn accept(&self, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        TlsAcceptor::from(self.current.load_full()).accept(stream).await
    }

    /// Takes up another certificate, or another key, until `stop` is cancelled; the files are looked at so often.
    pub(super) async fn follow(self, every: Duration, stop: CancellationToken) {
        let mut seen = self.stamps();
        while stop.run_until_cancelled(tokio::time::sleep(every)).await.is_some() {
            let now = self.stamps();
            if now == seen {
                continue;
            }
            // Of two files one may be written later than this; then they are looked at once more.
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
    let bytes = bytes_of("certificate", certificate)?;
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<_, _>>()
        .map_err(|_broken| not_pem("certificate", certificate, "CERTIFICATE"))?;
    if chain.is_empty() {
        return Err(not_pem("certificate", certificate, "CERTIFICATE"));
    }
    let private = PrivateKeyDer::from_pem_slice(&bytes_of("key", key)?)
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

fn bytes_of(what: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    let unreadable = |problem: String| TlsError::Unreadable { what, path: path.to_owned(), problem };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| unreadable(error.to_string()))?;
    // A pipe could be waited at for ever.
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err(unreadable("it is no regular file".to_owned()));
    }
    file.take(BYTES_MOST + 1).read_to_end(&mut bytes).map_err(|error| unreadable(error.to_string()))?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= BYTES_MOST => Ok(bytes),
        _ => Err(unreadable(format!("it is larger than {BYTES_MOST} bytes"))),
    }
}
