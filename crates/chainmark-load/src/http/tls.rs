//! TLS for connections to `https` targets.

use super::error::HttpError;
use super::order::{Protocol, TlsSettings};
use super::target::Target;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use std::sync::Arc;

/// What ALPN calls HTTP/2.
pub(super) const HTTP2: &[u8] = b"h2";

/// What every new connection is made from; sessions are resumed, as browsers and HTTP libraries do.
#[derive(Debug, Clone)]
pub(super) struct Tls {
    config: Arc<ClientConfig>,
    server_name: ServerName<'static>,
}

impl Tls {
    pub fn new(order: &TlsSettings, target: &Target, protocol: Protocol) -> Result<Self, HttpError> {
        let name = order.server_name.as_ref().unwrap_or(&target.host).clone();
        let server_name = ServerName::try_from(name.clone()).map_err(|_| HttpError::Value {
            name: "tls.server_name".into(),
            value: format!("{name:?}"),
            condition: "a host name or an address",
        })?;
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| super::error::refused("TLS", error))?;
        let config = if order.verify {
            let verifier = Arc::new(Trusting::new(order, provider)?);
            builder.dangerous().with_custom_certificate_verifier(verifier)
        } else {
            let verifier = Arc::new(AcceptAny(provider));
            builder.dangerous().with_custom_certificate_verifier(verifier)
        };
        let mut config = match Identity::of(order)? {
            Some(Identity { name, chain, key }) => config
                .with_client_auth_cert(chain, key)
                .map_err(|error| HttpError::Identity { source_name: name, reason: error.to_string() })?,
            None => config.with_no_client_auth(),
        };
        config.alpn_protocols = vec![
            match protocol {
                Protocol::Http1 => b"http/1.1".as_slice(),
                Protocol::Http2 => HTTP2,
            }
            .to_vec(),
        ];
        Ok(Self { config: Arc::new(config), server_name })
    }

    pub fn connection(&self) -> Result<ClientConnection, Error> {
        let mut connection = ClientConnection::new(self.config.clone(), self.server_name.clone())?;
        // A request is written before the handshake ends, and waits in the buffer whatever its size.
        connection.set_buffer_limit(None);
        Ok(connection)
    }
}

/// By what the server knows the client.
struct Identity {
    name: String,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    fn of(order: &TlsSettings) -> Result<Option<Self>, HttpError> {
        let Some(name) = order.cert_file.clone() else { return Ok(None) };
        let key_name = order.key_file.as_ref().unwrap_or(&name);
        let refuse =
            |source_name: &str, reason: String| HttpError::Identity { source_name: source_name.into(), reason };
        let chain = CertificateDer::pem_file_iter(&name).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let chain = chain.map_err(|error| refuse(&name, error.to_string()))?;
        if chain.is_empty() {
            return Err(refuse(&name, "the file contains no certificate".into()));
        }
        let key = PrivateKeyDer::from_pem_file(key_name).map_err(|error| refuse(key_name, error.to_string()))?;
        Ok(Some(Self { name, chain, key }))
    }
}

/// The usual verification. A certificate that the given file holds itself is trusted as the server's, too, although it
/// says that it is an authority's: so does every self-signed one that `openssl req -x509` makes.
#[derive(Debug)]
struct Trusting {
    usual: Arc<WebPkiServerVerifier>,
    listed: Vec<CertificateDer<'static>>,
}

impl Trusting {
    fn new(order: &TlsSettings, provider: Arc<CryptoProvider>) -> Result<Self, HttpError> {
        let mut store = RootCertStore::empty();
        let mut listed = Vec::new();
        let source_name = order.ca_file.clone().unwrap_or_else(|| "this system".into());
        let refuse = |reason: String| HttpError::Certificates { source_name: source_name.clone(), reason };
        if let Some(path) = &order.ca_file {
            for certificate in CertificateDer::pem_file_iter(path).map_err(|error| refuse(error.to_string()))? {
                let certificate = certificate.map_err(|error| refuse(error.to_string()))?;
                listed.push(certificate.clone());
                store.add(certificate).map_err(|error| refuse(error.to_string()))?;
            }
        } else {
            // What cannot be read among a system's hundred roots does not matter unless the server needs it.
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        if store.is_empty() {
            return Err(refuse("it contains no certificate".into()));
        }
        let usual = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider);
        Ok(Self { usual: usual.build().map_err(|error| refuse(error.to_string()))?, listed })
    }
}

/// Of an authority, and shown by a server; dates are checked before this.
fn is_authority(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(other)) = error else { return false };
    other.0.to_string() == "CaUsedAsEndEntity"
}

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.usual.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            Err(error) if is_authority(&error) && self.listed.contains(end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

/// Any certificate will do; the handshake's signatures are verified all the same.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
