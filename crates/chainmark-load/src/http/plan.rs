//! An order, made ready: what every thread of a load reads.

use super::body::Room;
use super::course::Course;
use super::error::{HttpError, refused};
use super::order::{Drawing, GiveUp, LoadConfig, Mode, PartConfig, Protocol, ProxySettings, Share};
use super::request::{Common, Request, connect_question};
use super::target::{Address, Target};
use super::tls::Tls;
use crate::clock::NS_PER_S;
use crate::schedule::ScheduleKind;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::Arc;

/// Maximum number of files that a process has open besides connections.
const OTHER_FILES: u64 = 256;
/// A thread can handle more, but then responses wait for each other.
const RATE_PER_THREAD: f64 = 50_000.0;
const CLIENTS_PER_THREAD: usize = 64;

/// Times are nanoseconds of the step.
#[derive(Debug)]
pub(super) struct Plan {
    pub requests: Vec<Request>,
    pub mix: Mix,
    pub drawing: Drawing,
    pub seed: u64,
    pub load: Load,
    /// Of the schedule, what this generator has; clients, connections and records of the plan are its own already.
    pub share: Share,
    /// How the level changes, if it does.
    pub course: Option<Arc<Course>>,
    pub warm_up_ns: i64,
    /// End of the window.
    pub end_ns: i64,
    pub drain_ns: i64,
    pub timeout_ns: i64,
    pub requests_per_connection: u32,
    pub protocol: Protocol,
    /// Clients that share a connection.
    pub streams: usize,
    pub error_pointers: Vec<String>,
    pub give_up: Option<GiveUpPlan>,
    pub max_records: u64,
    pub max_slowest: usize,
    /// For bodies that come in pieces.
    pub room: Room,
    pub tls: Option<Tls>,
    pub threads: usize,
    pub target: Target,
    /// Connected to in the target's place.
    pub proxy: Option<Target>,
    /// The CONNECT request to the proxy for a target with TLS.
    pub tunnel: Option<Vec<u8>>,
    /// Resolved when the load starts.
    pub addresses: Vec<Address>,
}

/// Groups of requests, and the frequency of each.
#[derive(Debug)]
pub(super) struct Mix {
    /// The first request of each part, and how many there are.
    parts: Vec<(usize, usize)>,
    /// The shares of the parts up to each, of 2^64.
    ends: Vec<u64>,
}

impl Mix {
    pub fn new(parts: &[PartConfig], requests: usize) -> Self {
        let whole = [PartConfig { weight: 1.0, requests }];
        let parts = if parts.is_empty() { &whole } else { parts };
        let weights: f64 = parts.iter().map(|part| part.weight).sum();
        let (mut begin, mut weight) = (0, 0.0);
        let mut mix = Self { parts: Vec::new(), ends: Vec::new() };
        for part in parts {
            mix.parts.push((begin, part.requests));
            begin += part.requests;
            weight += part.weight;
            // Saturates for the last one.
            mix.ends.push((weight / weights * 2f64.powi(64)) as u64);
        }
        mix
    }

    /// How many parts.
    pub fn size(&self) -> usize {
        self.parts.len()
    }

    /// The first request of the part that this random number falls into, and how many there are.
    pub fn drawn(&self, random: u64) -> (usize, usize) {
        self.parts[self.ends.partition_point(|&end| end <= random).min(self.parts.len() - 1)]
    }

    /// The only part's requests, if there is only one.
    pub fn alone(&self) -> Option<usize> {
        if let [(_, count)] = self.parts[..] { Some(count) } else { None }
    }

    fn part_of(&self, request: usize) -> usize {
        self.parts.partition_point(|&(begin, _)| begin <= request) - 1
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Load {
    Closed {
        clients: usize,
        think_ns: f64,
    },
    /// The rate of all generators, the connections of this one.
    Open {
        kind: ScheduleKind,
        rate_per_s: f64,
        connections: usize,
    },
}

impl Load {
    pub fn connections(&self) -> usize {
        match *self {
            Self::Closed { clients, .. } => clients,
            Self::Open { connections, .. } => connections,
        }
    }

    fn new(mode: &Mode, share: Share) -> Self {
        let own = |whole: u32| share.of(u64::from(whole)) as usize;
        match mode {
            Mode::Closed(closed) => {
                Self::Closed { clients: own(closed.clients), think_ns: closed.think_s * NS_PER_S as f64 }
            }
            Mode::Open(open) => Self::Open {
                kind: open.schedule.into(),
                rate_per_s: open.rate_per_s,
                connections: own(open.connections),
            },
        }
    }

    /// Half of the machine at most, as the server may run on the same one.
    fn threads(&self, requested: u32, share: Share) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let rate_per_thread = RATE_PER_THREAD * f64::from(share.count);
        let wanted = match (requested, self) {
            (0, Self::Closed { clients, .. }) => (clients / CLIENTS_PER_THREAD).min(cores / 2),
            (0, Self::Open { rate_per_s, .. }) => ((rate_per_s / rate_per_thread).ceil() as usize).min(cores / 2),
            (requested, _) => requested as usize,
        };
        wanted.clamp(1, self.connections())
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct GiveUpPlan {
    pub slow_ns: i64,
    pub slow: u64,
    pub failed: u64,
}

fn nanoseconds(time_s: f64) -> i64 {
    (time_s * NS_PER_S as f64).round() as i64
}

impl Plan {
    pub fn new(order: &LoadConfig) -> Result<Self, HttpError> {
        let target = Target::parse(&order.url)?;
        let (headers, protocol) = (order.headers.as_slice(), order.protocol);
        let reading = order.proxy.as_ref().filter(|_| !target.tls);
        let common = Common { target: &target, headers, coding: order.request_coding, protocol, proxy: reading };
        common.check()?;
        let with_close = order.requests_per_connection > 0;
        let requests = order.requests.iter().enumerate();
        let mix = Mix::new(&order.parts, order.requests.len());
        let requests: Result<_, _> = requests
            .map(|(index, request)| {
                let mut made = Request::new(index, request, &common, with_close)?;
                made.part = mix.part_of(index);
                Ok(made)
            })
            .collect();
        let load = Load::new(&order.mode, order.share);
        let give_up = |give_up: GiveUp| GiveUpPlan {
            slow_ns: nanoseconds(give_up.slow_s),
            slow: give_up.slow.max(1),
            failed: give_up.failed.max(1),
        };
        Ok(Self {
            requests: requests?,
            mix,
            drawing: order.order,
            seed: order.seed,
            load,
            share: order.share,
            course: Course::new(&order.course, nanoseconds(order.warm_up_s)).map(Arc::new),
            warm_up_ns: nanoseconds(order.warm_up_s),
            end_ns: nanoseconds(order.warm_up_s) + nanoseconds(order.duration_s),
            drain_ns: nanoseconds(order.drain_s),
            timeout_ns: nanoseconds(order.timeout_s),
            requests_per_connection: order.requests_per_connection,
            protocol,
            streams: order.streams as usize,
            error_pointers: order.error_pointers.clone(),
            give_up: order.give_up.map(give_up),
            max_records: order.share.of(order.max_records),
            max_slowest: order.max_slowest as usize,
            room: Room::of_this_machine(),
            tls: if target.tls { Some(Tls::new(&order.tls, &target, protocol)?) } else { None },
            threads: load.threads(order.threads, order.share),
            proxy: order.proxy.as_ref().map(|proxy| proxy_of(proxy, &target, protocol)).transpose()?,
            tunnel: order.proxy.as_ref().filter(|_| target.tls).map(|proxy| connect_question(&target, proxy)),
            target,
            addresses: Vec::new(),
        })
    }

    /// A thread's share.
    pub fn of_thread(&self, whole: usize, thread: usize) -> usize {
        whole / self.threads + usize::from(thread < whole % self.threads)
    }

    /// The number of a thread's active clients at this time of the step.
    pub fn clients_at(&self, time_ns: i64, thread: usize) -> usize {
        let own = |course: &Arc<Course>| self.share.of(course.at(time_ns) as u64) as usize;
        self.of_thread(self.course.as_ref().map_or(self.load.connections(), own), thread)
    }

    /// The number of a thread's first request among those of all threads of all generators.
    pub fn first_number(&self, thread: usize) -> u64 {
        u64::from(self.share.index) + u64::from(self.share.count) * thread as u64
    }

    /// The distance between the numbers of a thread's requests.
    pub fn stride(&self) -> u64 {
        u64::from(self.share.count) * self.threads as u64
    }

    /// The phase of a request that is due or starts at this time: 0 warm-up, 1 window.
    pub fn phase(&self, time_ns: i64) -> usize {
        usize::from(time_ns >= self.warm_up_ns)
    }
}

fn proxy_of(order: &ProxySettings, target: &Target, protocol: Protocol) -> Result<Target, HttpError> {
    let proxy = Target::parse(&order.url)?;
    let refuse = |reason| Err(HttpError::Url { url: order.url.clone(), reason });
    if proxy.tls || proxy.socket_path.is_some() || !proxy.base_path.is_empty() {
        return refuse("a proxy URL has the form http://host:port");
    }
    if target.socket_path.is_some() {
        return refuse("a proxy cannot connect to a Unix socket");
    }
    if !target.tls && protocol == Protocol::Http2 {
        return refuse("a proxy does not forward HTTP/2 without TLS");
    }
    Ok(proxy)
}

/// Raises the limit to this number of open files.
pub(super) fn allow_connections(connections: usize) -> Result<(), HttpError> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = connections as u64 + OTHER_FILES;
    if current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    if let Some(limit) = maximum.filter(|&maximum| maximum < wanted) {
        return Err(HttpError::OpenFiles { connections: connections as u64, limit });
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).map_err(|error| refused("open files", error))
}
