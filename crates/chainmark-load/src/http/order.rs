//! The target, the kind and the duration of a load: the JSON that defines it.

use super::coding::Coding;
use super::error::HttpError;
use crate::schedule::ScheduleKind;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

const MAX_SECONDS: f64 = 86_400.0;
/// One machine has no more ports towards one address.
const MAX_CONNECTIONS: u32 = 65_536;
const MAX_STREAMS: u32 = 1000;
const MAX_RATE_PER_S: f64 = 10_000_000.0;
/// Whichever is lost has had more than a hundredth of the requests, so that no p99 is met without it.
const MAX_GENERATORS: u32 = 64;

/// A whole order. Times are in seconds.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadConfig {
    /// `http://host:port` or `https://host:port`, with a path prefix for each request; or `unix:/path/of/a/socket`.
    pub url: String,
    /// Sent with every request that does not set them itself; their values are in no message.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    pub requests: Vec<RequestConfig>,
    /// What `requests` is made of, in its order, each part drawn by its weight; empty: all requests are one.
    #[serde(default)]
    pub parts: Vec<PartConfig>,
    /// How bodies are compressed.
    #[serde(default)]
    pub request_coding: Option<Coding>,
    /// Which request comes next.
    #[serde(default)]
    pub order: Drawing,
    pub mode: Mode,
    /// The part of the load that this generator makes; all members of an order are of the whole load.
    #[serde(default)]
    pub share: Share,
    /// Seconds after the warm-up, with the number of clients or the rate at that time: linear between these points, and
    /// at most the mode's value. Empty: always the mode's value.
    #[serde(default)]
    pub course: Vec<(f64, f64)>,
    /// Requests that are due or start before this are kept apart.
    #[serde(default)]
    pub warm_up_s: f64,
    /// The measured window after the warm-up.
    pub duration_s: f64,
    /// How long after the window requests in flight are waited for.
    #[serde(default = "default_drain_s")]
    pub drain_s: f64,
    /// From the sending of a request, including the connection, to the last byte of its response.
    #[serde(default = "default_timeout_s")]
    pub timeout_s: f64,
    /// 0: as many as the server allows.
    #[serde(default)]
    pub requests_per_connection: u32,
    #[serde(default)]
    pub protocol: Protocol,
    /// HTTP/2: how many clients share a connection, each with a stream of its own.
    #[serde(default = "default_streams")]
    pub streams: u32,
    /// JSON pointers of the members of an error's body that distinguish errors.
    #[serde(default)]
    pub error_pointers: Vec<String>,
    #[serde(default)]
    pub give_up: Option<GiveUp>,
    /// How many measured requests are recorded one by one.
    #[serde(default)]
    pub max_records: u64,
    /// Number of the slowest measured requests that are recorded with their stages; per generator.
    #[serde(default)]
    pub max_slowest: u32,
    #[serde(default)]
    pub tls: TlsSettings,
    /// None: connect directly to the target. No other setting defines a proxy, not even the environment.
    #[serde(default)]
    pub proxy: Option<ProxySettings>,
    /// 0: one, and more for many connections or a high rate.
    #[serde(default)]
    pub threads: u32,
    #[serde(default)]
    pub seed: u64,
}

fn default_drain_s() -> f64 {
    5.0
}

fn default_timeout_s() -> f64 {
    10.0
}

fn default_streams() -> u32 {
    1
}

/// The version of HTTP; nothing is negotiated during a load, so that all connections use the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum Protocol {
    #[default]
    #[serde(rename = "1.1")]
    Http1,
    /// With TLS the server must agree to it (ALPN); without it is configured.
    #[serde(rename = "2")]
    Http2,
}

impl Protocol {
    /// As HTTP calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
        }
    }
}

/// One request, and its correct response.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestConfig {
    pub method: String,
    pub path: String,
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    #[serde(default)]
    pub body: String,
    /// Whether the request may be sent twice; None: as HTTP defines for its method.
    #[serde(default)]
    pub repeatable: Option<bool>,
    #[serde(default)]
    pub expect: ExpectConfig,
}

/// Which of several generators this is. Generator `i` of `n` has the requests `i`, `i + n`, `i + 2n`, … of the
/// schedule, and as equal a part of the clients, connections and records as there can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    pub index: u32,
    pub count: u32,
}

impl Default for Share {
    fn default() -> Self {
        Self { index: 0, count: 1 }
    }
}

impl Share {
    /// This generator's share.
    pub fn of(self, whole: u64) -> u64 {
        let (index, count) = (u64::from(self.index), u64::from(self.count));
        whole / count + u64::from(index < whole % count)
    }
}

/// Requests that follow each other, and are measured by themselves as well.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartConfig {
    /// Relative frequency of its requests, compared with the other parts' weights.
    pub weight: f64,
    /// How many of them there are.
    pub requests: usize,
}

/// The correct response to a request.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectConfig {
    /// Empty: any 2xx.
    #[serde(default)]
    pub status: Vec<u16>,
    /// Whether the body must be JSON.
    #[serde(default)]
    pub json: bool,
    #[serde(default)]
    pub checks: Vec<CheckConfig>,
    /// Text that the body must hold.
    #[serde(default)]
    pub contains: Option<String>,
}

/// A condition on what `pointer` points at: exactly one of the other members.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckConfig {
    /// A JSON pointer (RFC 6901); inside `each` from the element on.
    pub pointer: String,
    #[serde(default, deserialize_with = "even_null")]
    pub is: Option<Value>,
    #[serde(default, rename = "type")]
    pub kind: Option<TypeName>,
    #[serde(default)]
    pub absent: Option<bool>,
    /// It is an array, each element of which passes this.
    #[serde(default)]
    pub each: Option<Box<CheckConfig>>,
}

/// `"is": null` is a condition, not the lack of one.
fn even_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// The types that a check can require.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TypeName {
    Object,
    Array,
    String,
    Number,
    Boolean,
    /// A string of decimal digits, with an optional minus: how JSON APIs write integers that are too large for a
    /// number.
    IntegerText,
}

/// Which request comes next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Drawing {
    #[default]
    Sequence,
    /// By the seed, each as likely as the others.
    Random,
}

/// Who decides when a request starts.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The response before it.
    Closed(Closed),
    /// The schedule.
    Open(Open),
}

/// A number of clients, each of which sends its next request after its response and a think time.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Closed {
    pub clients: u32,
    /// Think time between a response and the client's next request: exponential with this mean.
    #[serde(default)]
    pub think_s: f64,
}

/// Requests that are due whatever the outcome of earlier ones.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    pub rate_per_s: f64,
    #[serde(default)]
    pub schedule: Arrivals,
    /// Maximum number of connections; opened on demand.
    #[serde(default = "default_connections")]
    pub connections: u32,
}

fn default_connections() -> u32 {
    1024
}

/// The gaps between due times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    #[default]
    Even,
    Poisson,
}

impl From<Arrivals> for ScheduleKind {
    fn from(arrivals: Arrivals) -> Self {
        match arrivals {
            Arrivals::Even => Self::Even,
            Arrivals::Poisson => Self::Poisson,
        }
    }
}

/// Limits for the measured requests; a step that exceeds one ends early.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GiveUp {
    pub slow_s: f64,
    /// End once this number of requests was slower than `slow_s`; requests in flight for longer count.
    pub slow: u64,
    /// End once this number failed.
    pub failed: u64,
}

/// A proxy that all connections go through: a tunnel to an `https` target; to an `http` one it passes each request on.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxySettings {
    /// `http://host:port`.
    pub url: String,
    /// The value of `Proxy-Authorization`; it is in no message.
    #[serde(default)]
    pub authorization: Option<String>,
}

/// How the server's certificate is judged.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsSettings {
    /// PEM; none: what the system trusts.
    #[serde(default)]
    pub ca_file: Option<String>,
    #[serde(default = "default_verify")]
    pub verify: bool,
    /// None: the host of the URL.
    #[serde(default)]
    pub server_name: Option<String>,
    /// PEM: by which the server knows the client.
    #[serde(default)]
    pub cert_file: Option<String>,
    #[serde(default)]
    pub key_file: Option<String>,
}

fn default_verify() -> bool {
    true
}

impl Default for TlsSettings {
    fn default() -> Self {
        Self { ca_file: None, verify: true, server_name: None, cert_file: None, key_file: None }
    }
}

impl LoadConfig {
    /// # Errors
    /// It is not JSON, lacks a member, has one too many, or a value cannot be.
    pub fn from_json(text: &str) -> Result<Self, HttpError> {
        let order: Self =
            serde_json::from_str(text).map_err(|error| HttpError::LoadConfig { reason: error.to_string() })?;
        order.check()?;
        Ok(order)
    }

    /// Connections at most.
    pub fn connections(&self) -> u32 {
        match &self.mode {
            Mode::Closed(closed) => closed.clients,
            Mode::Open(open) => open.connections,
        }
    }

    fn check(&self) -> Result<(), HttpError> {
        for (name, value_s, least_s) in [
            ("warm_up_s", self.warm_up_s, 0.0),
            ("duration_s", self.duration_s, 1e-3),
            ("drain_s", self.drain_s, 0.0),
            ("timeout_s", self.timeout_s, 1e-3),
        ] {
            require(name, value_s, value_s >= least_s && value_s <= MAX_SECONDS, "a time of up to 86400 seconds")?;
        }
        let (name, connections) = match &self.mode {
            Mode::Closed(closed) => ("mode.closed.clients", closed.clients),
            Mode::Open(open) => ("mode.open.connections", open.connections),
        };
        require(name, connections, (1..=MAX_CONNECTIONS).contains(&connections), "from 1 to 65536")?;
        let Share { index, count } = self.share;
        require("share.count", count, (1..=MAX_GENERATORS).contains(&count), "from 1 to 64")?;
        require("share.count", count, count <= connections, "at most the number of clients or connections")?;
        require("share.index", index, index < count, "less than share.count")?;
        if let Mode::Open(open) = &self.mode {
            let rate = open.rate_per_s;
            let usable = (1e-3..=MAX_RATE_PER_S).contains(&rate);
            require("mode.open.rate_per_s", rate, usable, "from 0.001 to 10000000 requests per second")?;
        }
        if let Mode::Closed(closed) = &self.mode {
            let usable = (0.0..=MAX_SECONDS).contains(&closed.think_s);
            require("mode.closed.think_s", closed.think_s, usable, "a time of up to 86400 seconds")?;
        }
        self.check_course()?;
        for (index, part) in self.parts.iter().enumerate() {
            let usable = part.weight.is_finite() && part.weight > 0.0 && part.requests > 0;
            require(
                &format!("parts[{index}]"),
                format_args!("{part:?}"),
                usable,
                "a positive weight and at least one request",
            )?;
        }
        let parted: usize = self.parts.iter().map(|part| part.requests).sum();
        let whole = self.parts.is_empty() || parted == self.requests.len();
        require("parts", format_args!("{parted} requests"), whole, "as many requests as the list has")?;
        require("requests", "an empty list", !self.requests.is_empty(), "at least one request")?;
        let streams_usable = match self.protocol {
            Protocol::Http1 => self.streams == 1,
            Protocol::Http2 => (1..=MAX_STREAMS).contains(&self.streams),
        };
        require("streams", self.streams, streams_usable, "1, or up to 1000 with HTTP/2")?;
        require("threads", self.threads, self.threads <= 256, "at most 256")?;
        for pointer in &self.error_pointers {
            check_pointer("error_pointers", pointer)?;
        }
        if let Some(give_up) = &self.give_up {
            require("give_up.slow_s", give_up.slow_s, give_up.slow_s > 0.0, "positive")?;
        }
        Ok(())
    }

    fn check_course(&self) -> Result<(), HttpError> {
        let (least, most) = match &self.mode {
            Mode::Closed(closed) => (1.0, f64::from(closed.clients)),
            Mode::Open(open) => (1e-3, open.rate_per_s),
        };
        let mut before_s = 0.0;
        for (index, &(time_s, level)) in self.course.iter().enumerate() {
            let name = format!("course[{index}]");
            require(
                &name,
                time_s,
                (before_s..=MAX_SECONDS).contains(&time_s),
                "a time that is not before the previous one",
            )?;
            require(&name, level, (least..=most).contains(&level), "a positive level, at most the mode's")?;
            before_s = time_s;
        }
        Ok(())
    }
}

fn require(name: &str, value: impl std::fmt::Display, holds: bool, condition: &'static str) -> Result<(), HttpError> {
    if holds { Ok(()) } else { Err(HttpError::Value { name: name.into(), value: value.to_string(), condition }) }
}

pub(super) fn check_pointer(name: &str, pointer: &str) -> Result<(), HttpError> {
    let usable = pointer.is_empty() || pointer.starts_with('/');
    require(name, format_args!("{pointer:?}"), usable, "a JSON pointer, which begins with a slash or is empty")
}
