//! Requests as they go out, made once: bytes of HTTP/1.1, or a head and a body for HTTP/2.

use super::check::Expectation;
use super::coding::Coding;
use super::error::HttpError;
use super::order::{Protocol, ProxySettings, RequestConfig};
use super::target::Target;
use bytes::Bytes;

/// One request of the load.
#[derive(Debug)]
pub(super) struct Request {
    form: Form,
    pub expectation: Expectation,
    /// Whether the request may be sent twice.
    pub repeatable: bool,
    /// The part of the mix that it belongs to.
    pub part: usize,
}

#[derive(Debug)]
enum Form {
    /// `close`: the same with `Connection: close`, empty if no connection has a last request.
    Bytes {
        keep_alive: Box<[u8]>,
        close: Box<[u8]>,
    },
    Framed(Box<Framed>),
}

/// A request as HTTP/2 frames it.
#[derive(Debug)]
pub(super) struct Framed {
    pub head: http::Request<()>,
    pub body: Bytes,
}

impl Request {
    /// `index` is its place in the order, for messages.
    pub fn new(index: usize, order: &RequestConfig, common: &Common, with_close: bool) -> Result<Self, HttpError> {
        check(index, order)?;
        let content = Content::new(order, common);
        let form = match common.protocol {
            Protocol::Http1 => {
                let close = if with_close { content.serialise("Connection: close\r\n") } else { Box::default() };
                Form::Bytes { keep_alive: content.serialise(""), close }
            }
            Protocol::Http2 => Form::Framed(Box::new(content.frame(index)?)),
        };
        let expectation = Expectation::new(index, &order.expect)?;
        let repeatable = order.repeatable.unwrap_or_else(|| IDEMPOTENT.contains(&order.method.as_str()));
        Ok(Self { form, expectation, repeatable, part: 0 })
    }

    /// `last`: the server must close the connection after the response.
    pub fn bytes(&self, last: bool) -> &[u8] {
        match &self.form {
            Form::Bytes { close, .. } if last => close,
            Form::Bytes { keep_alive, .. } => keep_alive,
            Form::Framed(_) => unreachable!("a load speaks one protocol"),
        }
    }

    /// For HTTP/2.
    pub fn framed(&self) -> &Framed {
        match &self.form {
            Form::Framed(framed) => framed,
            Form::Bytes { .. } => unreachable!("a load speaks one protocol"),
        }
    }
}

/// What all requests of an order share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Common<'o> {
    pub target: &'o Target,
    pub headers: &'o [(String, String)],
    pub coding: Option<Coding>,
    pub protocol: Protocol,
    /// It reads the requests, and passes them on.
    pub proxy: Option<&'o ProxySettings>,
}

impl Common<'_> {
    /// # Errors
    /// A header that cannot be; its value is not repeated.
    pub fn check(&self) -> Result<(), HttpError> {
        for (name, value) in self.headers {
            check_header("headers", name, value, "hidden")?;
        }
        if let Some(value) = self.proxy.and_then(|proxy| proxy.authorization.as_deref()) {
            check_header("proxy.authorization", "Proxy-Authorization", value, "hidden")?;
        }
        Ok(())
    }
}

/// RFC 9110, 9.2.2; what has no body to wait for is refused anyway.
const IDEMPOTENT: [&str; 5] = ["GET", "PUT", "DELETE", "OPTIONS", "TRACE"];

/// What a request says, whichever protocol carries it.
struct Content<'o> {
    method: &'o str,
    path: String,
    scheme: &'static str,
    /// In the order in which they are sent, `Host` among them.
    fields: Vec<(&'o str, String)>,
    body: Vec<u8>,
}

impl<'o> Content<'o> {
    fn new(order: &'o RequestConfig, common: &Common<'o>) -> Self {
        let target = common.target;
        let own = |name: &str| order.headers.iter().any(|(header, _)| header.eq_ignore_ascii_case(name));
        let given =
            |name: &str| own(name) || common.headers.iter().any(|(header, _)| header.eq_ignore_ascii_case(name));
        let mut fields: Vec<(&str, String)> = Vec::new();
        if !given("Host") {
            fields.push(("Host", target.authority.clone()));
        }
        if !given("User-Agent") {
            fields.push(("User-Agent", concat!("chainmark/", env!("CARGO_PKG_VERSION")).into()));
        }
        let shared = common.headers.iter().filter(|(name, _)| !own(name));
        fields.extend(order.headers.iter().chain(shared).map(|(name, value)| (name.as_str(), value.clone())));
        let coding = common.coding.filter(|_| !order.body.is_empty() && !given("Content-Encoding"));
        let body = order.body.as_bytes();
        let body = coding.map_or_else(|| body.to_vec(), |coding| coding.encoded(body));
        if let Some(coding) = coding {
            fields.push(("Content-Encoding", coding.name().into()));
        }
        if !body.is_empty() || matches!(order.method.as_str(), "POST" | "PUT" | "PATCH") {
            fields.push(("Content-Length", body.len().to_string()));
        }
        if let Some(value) = common.proxy.and_then(|proxy| proxy.authorization.clone()) {
            fields.push(("Proxy-Authorization", value));
        }
        let scheme = if target.tls { "https" } else { "http" };
        let base = if common.proxy.is_some() { format!("{scheme}://{}", target.authority) } else { String::new() };
        let path = format!("{base}{}{}", target.base_path, order.path);
        Self { method: &order.method, path, scheme, fields, body }
    }

    fn serialise(&self, connection: &str) -> Box<[u8]> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.fields {
            head += &format!("{name}: {value}\r\n");
        }
        head += connection;
        head += "\r\n";
        let mut bytes = head.into_bytes();
        bytes.extend(&self.body);
        bytes.into_boxed_slice()
    }

    /// `Host` is part of the address there. Values that an error does not repeat may be secrets.
    fn frame(&self, index: usize) -> Result<Framed, HttpError> {
        let refuse = |member: &str, condition| {
            let name = format!("requests[{index}].{member}");
            HttpError::Value { name, value: "not valid in HTTP/2".into(), condition }
        };
        let (hosts, fields): (Vec<_>, Vec<_>) = self.fields.iter().partition(|(name, _)| is_host(name));
        let authority = hosts.first().map_or("", |(_, host)| host.as_str());
        let uri = http::Uri::builder().scheme(self.scheme).authority(authority).path_and_query(self.path.as_str());
        let uri = uri
            .build()
            .map_err(|_| refuse("path", "a path of up to 65534 bytes, and the host must be valid in a URL"))?;
        let mut head = http::Request::builder().method(self.method).uri(uri).version(http::Version::HTTP_2);
        for (name, value) in fields {
            head = head.header(*name, value.as_bytes());
        }
        let head = head.body(()).map_err(|_| refuse("headers", "valid HTTP headers"))?;
        Ok(Framed { head, body: Bytes::copy_from_slice(&self.body) })
    }
}

fn is_host(name: &str) -> bool {
    name.eq_ignore_ascii_case("Host")
}

fn check(index: usize, order: &RequestConfig) -> Result<(), HttpError> {
    let refuse = |member: &str, value: &str, condition| {
        let name = format!("requests[{index}].{member}");
        Err(HttpError::Value { name, value: format!("{value:?}"), condition })
    };
    if !is_token(&order.method) {
        return refuse("method", &order.method, "a method such as GET or POST");
    }
    if matches!(order.method.as_str(), "HEAD" | "CONNECT") {
        return refuse("method", &order.method, "a method whose response has a body, unlike HEAD and CONNECT");
    }
    if !order.path.starts_with('/') || !order.path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
        return refuse("path", &order.path, "a percent-encoded path that begins with a slash");
    }
    for (name, value) in &order.headers {
        check_header(&format!("requests[{index}].headers"), name, value, value)?;
    }
    Ok(())
}

/// `shown`: the value as a message may repeat it.
fn check_header(place: &str, name: &str, value: &str, shown: &str) -> Result<(), HttpError> {
    let refuse =
        |value: &str, condition| Err(HttpError::Value { name: place.into(), value: format!("{value:?}"), condition });
    if !is_token(name) {
        return refuse(name, "a header name");
    }
    if value.bytes().any(|byte| byte < b' ' && byte != b'\t' || byte == 0x7f) {
        return refuse(shown, "a header value without control characters");
    }
    if OWN_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own)) {
        return refuse(name, "a header that the load generator does not set itself");
    }
    Ok(())
}

/// They follow from the body and from how many requests a connection carries.
const OWN_HEADERS: [&str; 5] = ["Connection", "Content-Length", "Transfer-Encoding", "Upgrade", "Expect"];

fn is_token(text: &str) -> bool {
    let punctuation = b"!#$%&'*+-.^_`|~";
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || punctuation.contains(&byte))
}

/// The request to a proxy before the first byte to a server with TLS.
pub(super) fn connect_question(target: &Target, proxy: &ProxySettings) -> Vec<u8> {
    let host = if target.host.contains(':') { format!("[{}]", target.host) } else { target.host.clone() };
    let authority = format!("{host}:{}", target.port);
    let who = proxy.authorization.as_ref().map_or(String::new(), |value| format!("Proxy-Authorization: {value}\r\n"));
    format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{who}\r\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(json: &str) -> RequestConfig {
        serde_json::from_str(json).unwrap()
    }

    fn bytes(json: &str, last: bool) -> String {
        let target = Target::parse("http://host:81/base/").unwrap();
        let common = Common { target: &target, headers: &[], coding: None, protocol: Protocol::Http1, proxy: None };
        let request = Request::new(0, &order(json), &common, true).unwrap();
        String::from_utf8(request.bytes(last).to_vec()).unwrap()
    }

    #[test]
    fn a_request_has_the_expected_bytes() {
        let agent = concat!("User-Agent: chainmark/", env!("CARGO_PKG_VERSION"), "\r\n");
        let json =
            r#"{"method":"POST","path":"/block","headers":[["Content-Type","application/json"]],"body":"{\"é\":1}"}"#;
        let expected = format!(
            "POST /base/block HTTP/1.1\r\nHost: host:81\r\n{agent}Content-Type: application/json\r\n\
             Content-Length: 8\r\nConnection: close\r\n\r\n{{\"é\":1}}"
        );
        assert_eq!(bytes(json, true), expected);
        assert_eq!(bytes(json, false), expected.replace("Connection: close\r\n", ""));
        let json = r#"{"method":"GET","path":"/?q=1","headers":[["host","other"],["user-agent","x"]]}"#;
        assert_eq!(bytes(json, false), "GET /base/?q=1 HTTP/1.1\r\nhost: other\r\nuser-agent: x\r\n\r\n");
        assert!(bytes(r#"{"method":"POST","path":"/"}"#, false).contains("Content-Length: 0\r\n"));
    }

    #[test]
    fn input_that_would_break_the_framing_is_rejected() {
        let target = Target::parse("http://host").unwrap();
        let common = Common { target: &target, headers: &[], coding: None, protocol: Protocol::Http1, proxy: None };
        for json in [
            r#"{"method":"HEAD","path":"/"}"#,
            r#"{"method":"GET /","path":"/"}"#,
            r#"{"method":"GET","path":"x"}"#,
            r#"{"method":"GET","path":"/a b"}"#,
            r#"{"method":"GET","path":"/\r\nX: 1"}"#,
            r#"{"method":"GET","path":"/","headers":[["A:","1"]]}"#,
            r#"{"method":"GET","path":"/","headers":[["A","1\r\nB: 2"]]}"#,
            r#"{"method":"GET","path":"/","headers":[["content-length","3"]]}"#,
        ] {
            let error = Request::new(7, &order(json), &common, false).unwrap_err();
            assert!(error.to_string().starts_with("requests[7]."), "{error}");
        }
    }

    #[test]
    fn shared_headers_are_sent_unless_a_request_overrides_them_and_never_shown_in_messages() {
        let target = Target::parse("http://host").unwrap();
        let headers = [("X-Api-Key", "abc"), ("Accept", "text/plain")].map(|(name, value)| (name.into(), value.into()));
        let protocol = Protocol::Http1;
        let common = Common { target: &target, headers: &headers, coding: Some(Coding::Gzip), protocol, proxy: None };
        common.check().unwrap();
        let order = order(r#"{"method":"GET","path":"/","headers":[["accept","application/json"]]}"#);
        let request = Request::new(0, &order, &common, false).unwrap();
        let text = String::from_utf8(request.bytes(false).to_vec()).unwrap();
        assert!(text.contains("\r\nX-Api-Key: abc\r\n") && text.contains("\r\naccept: application/json\r\n"), "{text}");
        assert!(!text.contains("text/plain") && !text.contains("Content-Encoding"), "{text}");
        let headers = [("X-Api-Key".to_owned(), "secret\r\nX: 1".to_owned())];
        let error = Common { headers: &headers, ..common }.check().unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    #[test]
    fn an_http_2_request_has_its_host_in_the_uri_and_all_other_headers() {
        let target = Target::parse("https://host:81/base").unwrap();
        let headers = [("X-Api-Key".to_owned(), "abc".to_owned())];
        let common =
            Common { target: &target, headers: &headers, coding: None, protocol: Protocol::Http2, proxy: None };
        let text = r#"{"method":"POST","path":"/a?b=1","headers":[["Host","other"],["Accept","x"]],"body":"{}"}"#;
        let request = Request::new(0, &order(text), &common, false).unwrap();
        let Framed { head, body } = request.framed();
        assert_eq!((head.uri().to_string(), body.as_ref()), ("https://other/base/a?b=1".into(), b"{}".as_slice()));
        let names: Vec<&str> = head.headers().keys().map(http::HeaderName::as_str).collect();
        assert_eq!(names, ["user-agent", "accept", "x-api-key", "content-length"]);
    }
}
