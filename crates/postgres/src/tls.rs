//! Encryption of connections as `sslmode` says, by rustls.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use fetchwell_source::contract::PostgresError;
use futures_util::future::BoxFuture;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_rustls::TlsConnector;

use super::url::{PostgresUrl, SslMode};

/// Failure of a handshake.
#[derive(Debug)]
pub(crate) struct TlsError(pub(crate) String);

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TlsError {}

/// Encryption of the connections to one database.
#[derive(Clone)]
pub(crate) struct PostgresTls(Arc<ClientConfig>);

impl fmt::Debug for PostgresTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PostgresTls")
    }
}

impl PostgresTls {
    /// Prepares the checks that the URL asks for.
    ///
    /// # Errors
    ///
    /// The certificate of the authority cannot be read.
    pub(crate) fn new(url: &PostgresUrl) -> Result<Self, PostgresError> {
        let secret = |problem: String| PostgresError::Secret { database: url.to_string(), problem };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| secret(error.to_string()))?;
        let roots = match &url.root_certificate {
            None => RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() },
            Some(path) => {
                let unreadable = || secret(format!("sslrootcert {} has no certificate", path.display()));
                let mut roots = RootCertStore::empty();
                let certificates = CertificateDer::pem_file_iter(path).map_err(|_error| unreadable())?;
                for certificate in certificates {
                    let certificate = certificate.map_err(|_error| unreadable())?;
                    roots.add(certificate).map_err(|_error| unreadable())?;
                }
                if roots.is_empty() {
                    return Err(unreadable());
                }
                roots
            }
        };
        let verifies_authority = match url.ssl_mode {
            SslMode::Disable | SslMode::Prefer => false,
            SslMode::Require => url.root_certificate.is_some(),
            SslMode::VerifyCa | SslMode::VerifyFull => true,
        };
        let authority = if verifies_authority {
            let verifier =
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
            Some(verifier.build().map_err(|error| secret(error.to_string()))?)
        } else {
            None
        };
        let verifies_name = url.ssl_mode == SslMode::VerifyFull;
        let verifier = CertificateVerifier { provider, authority, verifies_name };
        let config = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
        Ok(Self(Arc::new(config.with_no_client_auth())))
    }
}

/// Checks the certificate of a server as far as `sslmode` asks for it.
#[derive(Debug)]
struct CertificateVerifier {
    provider: Arc<CryptoProvider>,
    /// Check of the authority; `None` accepts every certificate.
    authority: Option<Arc<WebPkiServerVerifier>>,
    verifies_name: bool,
}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(authority) = &self.authority else { return Ok(ServerCertVerified::assertion()) };
        match authority.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            // The name is checked last, so the authority is a known one.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.verifies_name => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for PostgresTls {
    type Stream = TlsStream<S>;
    type TlsConnect = Handshake;
    type Error = TlsError;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, TlsError> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_invalid| TlsError("the host is no name that a certificate can have".to_owned()))?;
        Ok(Handshake { connector: TlsConnector::from(Arc::clone(&self.0)), name })
    }
}

/// Handshake with one host.
pub(crate) struct Handshake {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Handshake {
    type Stream = TlsStream<S>;
    type Error = TlsError;
    type Future = BoxFuture<'static, Result<TlsStream<S>, TlsError>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let connected = self.connector.connect(self.name, stream).await;
            connected.map(TlsStream).map_err(|error| TlsError(error.to_string()))
        })
    }
}

/// Encrypted stream of a connection.
pub(crate) struct TlsStream<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> tokio_postgres::tls::TlsStream for TlsStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TlsStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
