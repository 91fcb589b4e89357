//! TLS: right certificates pass, wrong ones have their class.

use crate::server::{Server, read_request, with_length, write};
use crate::{closed, order, post, run};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::json;
use std::io::BufReader;
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

/// Made when the tests run, so that no private key is ever in the sources: the server's configuration, and the files of
/// two authorities, the first of which signed it.
static MADE: LazyLock<(Arc<ServerConfig>, [PathBuf; 2])> = LazyLock::new(|| {
    let authority = authority("right");
    let key = KeyPair::generate().unwrap();
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &authority).unwrap();
    (
        config(&certificate.pem(), &key.serialize_pem()),
        [written("right", &authority), written("other", &self::authority("other"))],
    )
});

/// Each has a name of its own: with another's name and another key, it would be a forgery, and not a stranger.
fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn written(name: &str, authority: &CertifiedIssuer<'static, KeyPair>) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.pem", std::process::id()));
    std::fs::write(&path, authority.pem()).unwrap();
    path
}

fn config(certificate: &str, key: &str) -> Arc<ServerConfig> {
    let certificates = CertificateDer::pem_slice_iter(certificate.as_bytes()).map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    Arc::new(builder.with_no_client_auth().with_single_cert(certificates, key).unwrap())
}

/// A body of 100 kB, so that a response is several records.
fn serve(stream: TcpStream, config: Arc<ServerConfig>) {
    let stream = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
    let mut reader = BufReader::new(stream);
    let body = format!("\"{}\"", "x".repeat(100_000));
    while read_request(&mut reader).is_some() {
        if !write(reader.get_mut(), &with_length("200 OK", &body)) {
            return;
        }
    }
}

fn server() -> Server {
    let config = MADE.0.clone();
    let mut server = Server::new(move |_, stream| serve(stream, config.clone()));
    server.url = server.url.replace("http://127.0.0.1", "https://localhost");
    server
}

#[test]
fn a_certificate_of_the_given_authority_passes_on_reused_and_new_connections() {
    let server = server();
    for limit in [0, 1] {
        let mut order = order(&server.url, closed(2), vec![post("/", json!({"json": true}))]);
        order["tls"] = json!({"ca_file": MADE.1[0]});
        order["requests_per_connection"] = json!(limit);
        let result = run(&order);
        assert_eq!(result.counts.failed, 0, "{:?}", result.classes);
        assert!(result.counts.ok >= 4, "{:?}", result.counts);
        assert!(result.bytes_in > result.counts.ok * 100_000);
        assert!(limit == 1 || result.connections.opened == 2);
    }
}

#[test]
fn an_untrusted_certificate_or_one_of_another_host_has_its_own_failure_class() {
    let server = server();
    let [right, other] = &MADE.1;
    for (authority, name, reason) in [(other, "localhost", "not trusted"), (right, "other.test", "for another host")] {
        let mut order = order(&server.url, closed(1), vec![post("/", json!({}))]);
        order["tls"] = json!({"ca_file": authority, "server_name": name});
        let result = run(&order);
        assert!(result.counts.failed > 0 && result.counts.ok == 0, "{:?}", result.counts);
        assert!(result.classes.iter().all(|class| class.class == "tls"), "{:?}", result.classes);
        assert!(result.classes[0].detail.contains(reason), "{:?}", result.classes);
    }
}

#[test]
fn verification_can_be_disabled() {
    let server = server();
    let mut order = order(&server.url, closed(1), vec![post("/", json!({}))]);
    order["tls"] = json!({"verify": false, "server_name": "other.test"});
    let result = run(&order);
    assert_eq!(result.counts.failed, 0, "{:?}", result.classes);
    assert!(result.counts.ok > 0);
}

#[test]
fn a_server_without_tls_fails_the_handshake() {
    let server = Server::answering(|_, stream| write(stream, &with_length("400 Bad Request", "")));
    let mut order = order(&server.url.replace("http:", "https:"), closed(1), vec![post("/", json!({}))]);
    (order["tls"], order["timeout_s"]) = (json!({"verify": false}), json!(0.2));
    let result = run(&order);
    assert!(result.counts.failed > 0 && result.counts.ok == 0);
    assert!(result.classes.iter().all(|class| ["tls", "timeout"].contains(&class.class)), "{:?}", result.classes);
}
