//! The target of the requests.

use super::error::HttpError;
use rustix::net::SocketAddrUnix;
use std::net::{SocketAddr, ToSocketAddrs};

/// The endpoint of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Ip(SocketAddr),
    Unix(SocketAddrUnix),
}

/// What requests over a socket in the file system call their host, as curl does.
const LOCAL: &str = "localhost";

/// The parts of a base URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub tls: bool,
    /// A name or an address; an IPv6 address without brackets.
    pub host: String,
    pub port: u16,
    /// What the `Host` field says.
    pub authority: String,
    /// Prefix of the path of each request; without a trailing slash.
    pub base_path: String,
    /// A socket in the file system instead of a host and a port.
    pub socket_path: Option<String>,
}

impl Target {
    /// # Errors
    /// No URL, or one of another scheme, or one with parts that a base of paths cannot have.
    pub fn parse(url: &str) -> Result<Self, HttpError> {
        let refuse = |reason| HttpError::Url { url: url.to_owned(), reason };
        if let Some(path) = strip_scheme(url, "unix:") {
            if !path.starts_with('/') {
                return Err(refuse("a socket's path begins with a slash"));
            }
            return Ok(Self {
                tls: false,
                host: LOCAL.into(),
                port: 0,
                authority: LOCAL.into(),
                base_path: String::new(),
                socket_path: Some(path.to_owned()),
            });
        }
        let (tls, rest) = if let Some(rest) = strip_scheme(url, "http://") {
            (false, rest)
        } else if let Some(rest) = strip_scheme(url, "https://") {
            (true, rest)
        } else {
            return Err(refuse("it begins with neither http:// nor https:// nor unix:/"));
        };
        if !rest.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(refuse("it contains a space or a character that is not ASCII"));
        }
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if path.contains(['?', '#']) {
            return Err(refuse("it has a query or a fragment, which belong to the paths of the requests"));
        }
        if authority.contains('@') {
            return Err(refuse("it contains credentials; give an Authorization header with the requests"));
        }
        let (host, port) = split_authority(authority).ok_or_else(|| refuse("its port is not a number"))?;
        if host.is_empty() {
            return Err(refuse("it has no host"));
        }
        Ok(Self {
            tls,
            host: host.to_owned(),
            port: port.unwrap_or(if tls { 443 } else { 80 }),
            authority: authority.to_owned(),
            base_path: path.trim_end_matches('/').to_owned(),
            socket_path: None,
        })
    }

    /// All addresses of the host, in the order of the system's preference.
    ///
    /// # Errors
    /// The name has none.
    pub fn resolve(&self) -> Result<Vec<Address>, HttpError> {
        if let Some(path) = &self.socket_path {
            let refuse =
                |error: rustix::io::Errno| HttpError::Resolve { host: path.clone(), reason: error.to_string() };
            return Ok(vec![Address::Unix(SocketAddrUnix::new(path.as_str()).map_err(refuse)?)]);
        }
        let refuse = |reason| HttpError::Resolve { host: self.host.clone(), reason };
        let mut addresses: Vec<Address> = Vec::new();
        for address in (self.host.as_str(), self.port).to_socket_addrs().map_err(|error| refuse(error.to_string()))? {
            let address = Address::Ip(address);
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        if addresses.is_empty() { Err(refuse("it has no address".into())) } else { Ok(addresses) }
    }
}

fn strip_scheme<'u>(url: &'u str, scheme: &str) -> Option<&'u str> {
    let head = url.get(..scheme.len())?;
    head.eq_ignore_ascii_case(scheme).then(|| &url[scheme.len()..])
}

fn split_authority(authority: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    match port {
        "" => Some((host, None)),
        port => Some((host, Some(port.strip_prefix(':')?.parse().ok()?))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_accepted_as_operators_write_them() {
        for (url, tls, host, port, authority, base_path) in [
            ("http://127.0.0.1:18082", false, "127.0.0.1", 18082, "127.0.0.1:18082", ""),
            ("HTTP://localhost/", false, "localhost", 80, "localhost", ""),
            ("https://api.example.org/mesh/v1/", true, "api.example.org", 443, "api.example.org", "/mesh/v1"),
            ("http://[::1]:8082/a", false, "::1", 8082, "[::1]:8082", "/a"),
        ] {
            let (host, authority, base_path) = (host.to_owned(), authority.to_owned(), base_path.to_owned());
            let socket_path = None;
            let target = Target { tls, host, port, authority, base_path, socket_path };
            assert_eq!(Target::parse(url), Ok(target), "{url}");
        }
    }

    #[test]
    fn an_invalid_base_url_is_rejected() {
        for url in [
            "127.0.0.1:80",
            "ftp://host",
            "unix:relative.sock",
            "http://",
            "http://host:port",
            "http://host:99999",
            "http://user:secret@host",
            "http://host/?q",
            "http://ho st",
            "http://[::1",
            "http://:80",
        ] {
            assert!(Target::parse(url).is_err(), "{url}");
        }
    }

    #[test]
    fn an_unresolvable_name_is_a_connection_error() {
        let error = Target::parse("http://no-such-host.invalid").unwrap().resolve().unwrap_err();
        assert!(error.is_connection());
        assert!(error.to_string().contains("no-such-host.invalid"));
    }
}
