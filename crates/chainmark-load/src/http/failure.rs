//! Why a request failed, in words: limits of this machine are distinguished from refusals of the server.

use super::answer::Malformed;
use super::classes::Kind;
use rustix::io::Errno;
use rustls::CertificateError;
use std::borrow::Cow;

/// Why a request failed.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub kind: Kind,
    pub detail: Cow<'static, str>,
    /// The server says that it did nothing for the request, which may therefore be sent again, whatever its method.
    pub is_unprocessed: bool,
}

impl Failure {
    pub fn new(kind: Kind, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, detail: detail.into(), is_unprocessed: false }
    }
}

impl From<Malformed> for Failure {
    fn from(malformed: Malformed) -> Self {
        Self::new(Kind::Protocol, malformed.to_string())
    }
}

pub(super) fn tls_reason(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(reason) => format!("the server's certificate {}", certificate_fault(reason)),
        rustls::Error::InvalidMessage(_) => "the server does not respond with TLS".into(),
        error => error.to_string(),
    }
}

/// The problem with a certificate, as the rest of a sentence.
fn certificate_fault(error: &CertificateError) -> Cow<'static, str> {
    use CertificateError as E;
    match error {
        E::Expired | E::ExpiredContext { .. } => "has expired".into(),
        E::NotValidYet | E::NotValidYetContext { .. } => "is not valid yet".into(),
        E::NotValidForName | E::NotValidForNameContext { .. } => "is for another host".into(),
        E::UnknownIssuer => "is self-signed, or signed by an authority that is not trusted".into(),
        E::Revoked => "has been revoked".into(),
        E::BadEncoding => "cannot be read".into(),
        E::BadSignature => "has an invalid signature".into(),
        E::InvalidPurpose | E::InvalidPurposeContext { .. } => "is not a server certificate".into(),
        error => format!("is not accepted: {error}").into(),
    }
}

pub(super) fn reason(error: Errno) -> String {
    let text = std::io::Error::from(error).to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// Why no address took a connection.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Refusals {
    /// The last limit of this machine, and the last refusal by the network or the server.
    machine: Option<Errno>,
    other: Option<Errno>,
}

impl Refusals {
    pub fn add(&mut self, error: Errno) {
        if machine_limit(error).is_some() {
            self.machine = Some(error);
        } else {
            self.other = Some(error);
        }
    }

    /// Of a server with several addresses, one may be none of this machine's kind (IPv6, say): what the others say
    /// counts then, unless one of them has been connected to before.
    pub fn failure(self, connected_before: bool) -> Failure {
        match (self.machine.and_then(machine_limit), self.other) {
            (Some(limit), None) => Failure::new(Kind::Generator, limit),
            (Some(limit), Some(_)) if connected_before => Failure::new(Kind::Generator, limit),
            (_, Some(error)) => Failure::new(Kind::Connect, reason(error)),
            (None, None) => Failure::new(Kind::Connect, "no address"),
        }
    }
}

/// Which limit of the machine that makes the load this is, and what raises it; None: it is none.
fn machine_limit(error: Errno) -> Option<&'static str> {
    match error {
        Errno::MFILE => Some("this process has too many open files; raise `ulimit -n`"),
        Errno::NFILE => Some("this machine has too many open files; raise `sysctl fs.file-max`"),
        Errno::ADDRNOTAVAIL => Some("no local port is free; keep connections alive, or use more source addresses"),
        Errno::NOBUFS | Errno::NOMEM => Some("no memory for another connection; use fewer connections"),
        Errno::NOSPC => Some("too many watched connections; raise `sysctl fs.epoll.max_user_watches`"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(errors: &[Errno], connected_before: bool) -> (Kind, String) {
        let mut refusals = Refusals::default();
        errors.iter().for_each(|&error| refusals.add(error));
        let Failure { kind, detail, .. } = refusals.failure(connected_before);
        (kind, detail.into_owned())
    }

    #[test]
    fn limits_of_this_machine_are_not_server_errors() {
        for (error, message) in [
            (Errno::MFILE, "ulimit -n"),
            (Errno::NFILE, "fs.file-max"),
            (Errno::ADDRNOTAVAIL, "no local port is free"),
            (Errno::NOBUFS, "no memory"),
            (Errno::NOSPC, "max_user_watches"),
        ] {
            let (kind, detail) = failure(&[error], false);
            assert_eq!(kind, Kind::Generator, "{error}");
            assert!(detail.contains(message), "{detail}");
        }
        for error in [Errno::CONNREFUSED, Errno::HOSTUNREACH, Errno::NETUNREACH, Errno::TIMEDOUT, Errno::CONNRESET] {
            assert_eq!(failure(&[error], true), (Kind::Connect, reason(error)));
        }
    }

    #[test]
    fn a_server_that_is_down_is_reported_as_down_even_without_ipv6() {
        for errors in [[Errno::ADDRNOTAVAIL, Errno::CONNREFUSED], [Errno::CONNREFUSED, Errno::ADDRNOTAVAIL]] {
            assert_eq!(failure(&errors, false).0, Kind::Connect);
            // It was up before: one address has no free port, and nothing ever listened at the other.
            assert_eq!(failure(&errors, true).0, Kind::Generator);
        }
    }
}
