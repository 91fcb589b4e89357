//! Faults on request: their kinds, their notation, and their effect on one host.

use crate::chain::{Absence, Disturbances};
use crate::cluster::Cluster;
use crate::error::{Result, SimulationError};
use crate::logs::order::{LogRequest, host_number};
use crate::random::{Draws, Purpose};
use crate::trace::NEVER;

const NS_PER_S: f64 = 1e9;
/// Faults without a time fall into the middle of the run.
const MIDDLE: (f64, f64) = (0.2, 0.7);
const FOR_EVER_NS: i64 = i64::MAX;

/// Everything that can be ordered to go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Late,
    Restart,
    Crash,
    Stall,
    Fork,
    Gap,
    Dropped,
    Duplicated,
    Corrupt,
    Foreign,
    Truncated,
    WrongHost,
    FallingEdges,
    NonBlocking,
    Rollback,
    NoAnnouncement,
    NoSend,
    MissedStart,
    DoubleStart,
    LimitedAdoptions,
    ClockOffset,
    ClockDrift,
}

/// The times that a kind accepts.
#[derive(Debug, Clone, Copy, PartialEq)]
enum When {
    /// None: it holds for the whole run.
    Never,
    /// One, and for ever after.
    Instant,
    /// Two; the default length in seconds, or none for the whole run.
    Window(Option<f64>),
}

/// The value that a kind accepts, and its default.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Takes {
    Nothing,
    Probability(f64),
    /// In seconds, signed; drawn from ± the default when omitted.
    Offset(f64),
    PartsPerMillion(f64),
    PerSecond(f64),
    Name(&'static str),
}

/// What a kind is called and means, with an example.
#[derive(Debug, Clone, Copy)]
pub struct KindInfo {
    pub kind: Kind,
    pub name: &'static str,
    pub meaning: &'static str,
    pub example: &'static str,
    when: When,
    takes: Takes,
}

const fn info(
    kind: Kind,
    name: &'static str,
    when: When,
    takes: Takes,
    meaning: &'static str,
    example: &'static str,
) -> KindInfo {
    KindInfo { kind, name, meaning, example, when, takes }
}

/// All kinds, those that change the network first.
pub const KINDS: [KindInfo; 22] = {
    use Kind as K;
    use Takes as T;
    use When as W;
    const WHOLE: When = When::Window(None);
    [
        info(K::Late, "late", W::Instant, T::Nothing, "the host starts late", "late:node-3@120"),
        info(
            K::Restart,
            "restart",
            W::Window(Some(30.0)),
            T::Nothing,
            "the process is down in this period; its counters restart at 0",
            "restart:node-4@1000-1030",
        ),
        info(K::Crash, "crash", W::Instant, T::Nothing, "the process stops and does not restart", "crash:node-3@4000"),
        info(
            K::Stall,
            "stall",
            W::Window(Some(60.0)),
            T::Nothing,
            "the host receives nothing in this period, then fetches several blocks at once",
            "stall:node-5@500-560",
        ),
        info(K::Fork, "fork", W::Instant, T::Nothing, "a second host also leads the slot: a slot battle", "fork@300"),
        info(
            K::Gap,
            "gap",
            W::Window(Some(60.0)),
            T::Nothing,
            "the host runs, but its lines are lost",
            "gap:node-2@500-560",
        ),
        info(K::Dropped, "dropped", WHOLE, T::Probability(0.01), "lines are lost", "dropped:node-5=1%"),
        info(
            K::Duplicated,
            "duplicated",
            WHOLE,
            T::Probability(0.01),
            "lines are written twice",
            "duplicated:node-5=1%",
        ),
        info(
            K::Corrupt,
            "corrupt",
            WHOLE,
            T::Probability(0.01),
            "lines are cut or overwritten with binary bytes",
            "corrupt:node-6=0.5%",
        ),
        info(
            K::Foreign,
            "foreign",
            WHOLE,
            T::Probability(0.01),
            "lines of other programs and empty lines are mixed in",
            "foreign:node-6=2%",
        ),
        info(K::Truncated, "truncated", W::Never, T::Nothing, "the log's last line is cut off", "truncated:node-7"),
        info(
            K::WrongHost,
            "wrong-host",
            WHOLE,
            T::Name("ip-10-0-0-1"),
            "the lines name another host",
            "wrong-host:node-8=localhost",
        ),
        info(
            K::FallingEdges,
            "falling-edges",
            WHOLE,
            T::Nothing,
            "falling edges are logged as `risingEdge: false` instead of without the key",
            "falling-edges:node-9",
        ),
        info(
            K::NonBlocking,
            "non-blocking",
            WHOLE,
            T::Probability(0.1),
            "announcements are preceded by non-blocking reads",
            "non-blocking:node-9=10%",
        ),
        info(
            K::Rollback,
            "rollback",
            WHOLE,
            T::Probability(0.1),
            "announcements are preceded by a rollback to the parent",
            "rollback:node-9=10%",
        ),
        info(
            K::NoAnnouncement,
            "no-announcement",
            WHOLE,
            T::Probability(0.05),
            "a block's announcements are not logged",
            "no-announcement:node-10=5%",
        ),
        info(
            K::NoSend,
            "no-send",
            WHOLE,
            T::Probability(0.05),
            "the sending of a block is not logged",
            "no-send:node-10=5%",
        ),
        info(
            K::MissedStart,
            "missed-start",
            WHOLE,
            T::Probability(0.01),
            "the forge loop skips slots in which the host does not lead",
            "missed-start:node-11=1%",
        ),
        info(
            K::DoubleStart,
            "double-start",
            WHOLE,
            T::Probability(0.01),
            "the forge loop runs twice in slots in which the host does not lead",
            "double-start:node-11=1%",
        ),
        info(
            K::LimitedAdoptions,
            "limited-adoptions",
            W::Never,
            T::PerSecond(1.25),
            "adoptions are logged at most this often per second, as by real nodes",
            "limited-adoptions:all=1.25",
        ),
        info(
            K::ClockOffset,
            "clock-offset",
            W::Never,
            T::Offset(0.05),
            "the clock is off by this amount; ± draws it per host",
            "clock-offset:node-7=+250ms",
        ),
        info(
            K::ClockDrift,
            "clock-drift",
            W::Never,
            T::PartsPerMillion(50.0),
            "the clock runs fast or slow",
            "clock-drift:node-7=+20ppm",
        ),
    ]
};

impl KindInfo {
    /// The unit of its value.
    pub fn unit(&self) -> &'static str {
        match self.takes {
            Takes::Offset(_) => "s",
            Takes::PartsPerMillion(_) => "ppm",
            Takes::PerSecond(_) => "1/s",
            Takes::Nothing | Takes::Probability(_) | Takes::Name(_) => "",
        }
    }
}

impl Kind {
    pub fn info(self) -> &'static KindInfo {
        &KINDS[self as usize]
    }
}

/// A fault of one host, with omitted values drawn from the seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    pub kind: Kind,
    pub host: u32,
    /// Nanoseconds since the start of the network.
    pub from_ns: i64,
    /// `i64::MAX`: to the end.
    pub until_ns: i64,
    /// A probability, seconds, parts per million or a rate, by kind; 0 if there is none.
    pub value: f64,
    /// The value as text, if it is a name.
    pub name: String,
}

impl Fault {
    #[inline]
    pub fn at(&self, time_ns: i64) -> bool {
        self.from_ns <= time_ns && time_ns < self.until_ns
    }
}

/// A fault as a user writes it: `KIND[:HOST][@FROM[-UNTIL]][=VALUE]`.
#[derive(Debug, Clone)]
struct Written<'a> {
    text: &'a str,
    info: &'static KindInfo,
    host: Option<&'a str>,
    times: Option<&'a str>,
    value: Option<&'a str>,
}

/// Parse all faults of an order; the result is sorted by host, and each host's are in the order in which they were
/// written.
///
/// # Errors
/// An unknown kind or host, an invalid time or value.
pub fn read(order: &LogRequest, cluster: &Cluster) -> Result<Vec<Fault>> {
    let end_ns = order.slot_start_ns(order.slots);
    let mut faults = Vec::new();
    for (number, text) in order.faults.iter().enumerate() {
        let written = Written::split(text)?;
        let draws = Draws::new(order.scenario.seed ^ 0x00fa_0017, number as u64);
        for host in written.hosts(cluster, draws)? {
            faults.push(written.fault(host, end_ns, draws)?);
        }
        if written.info.kind == Kind::Fork {
            let first: Fault = faults[faults.len() - 1].clone();
            let others = cluster.hosts() as u64 - 1;
            let rival = draws.below(1, Purpose::Fault, 9, others) as u32;
            faults.push(Fault { host: rival + u32::from(rival >= first.host), ..first });
        }
    }
    faults.sort_by_key(|fault| fault.host);
    Ok(faults)
}

impl<'a> Written<'a> {
    fn split(text: &'a str) -> Result<Self> {
        let (head, value) = match text.split_once('=') {
            Some((head, value)) => (head, Some(value)),
            None => (text, None),
        };
        let (head, times) = match head.split_once('@') {
            Some((head, times)) => (head, Some(times)),
            None => (head, None),
        };
        let (name, host) = match head.split_once(':') {
            Some((name, host)) => (name, Some(host)),
            None => (head, None),
        };
        let Some(info) = KINDS.iter().find(|info| info.name == name) else {
            let names: Vec<&str> = KINDS.iter().map(|info| info.name).collect();
            return Err(SimulationError::impossible(
                format!("there is no kind of fault `{name}`"),
                format!("the kinds are {}; `--fault list` explains them", names.join(", ")),
            ));
        };
        Ok(Self { text, info, host, times, value })
    }

    fn wrong(&self, what: impl std::fmt::Display) -> SimulationError {
        SimulationError::impossible(
            format!("the fault `{}` {what}", self.text),
            format!("write it like `--fault {}`", self.info.example),
        )
    }

    fn hosts(&self, cluster: &Cluster, draws: Draws) -> Result<Vec<u32>> {
        let n = cluster.hosts() as u32;
        match self.host {
            None => Ok(vec![draws.below(0, Purpose::Fault, 0, u64::from(n)) as u32]),
            Some("all") if matches!(self.info.kind, Kind::Late | Kind::Crash | Kind::Restart | Kind::Fork) => {
                Err(self.wrong("cannot befall all hosts at once"))
            }
            Some("all") => Ok((0..n).collect()),
            Some(name) => Ok(vec![host_number(cluster, name)? as u32]),
        }
    }

    fn fault(&self, host: u32, end_ns: i64, draws: Draws) -> Result<Fault> {
        let (from_ns, until_ns) = self.window(end_ns, draws)?;
        let name = match self.info.takes {
            Takes::Name(default) => self.value.unwrap_or(default).to_owned(),
            _ => String::new(),
        };
        if name.bytes().any(|byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
            return Err(self.wrong("names a host with characters that no host name has"));
        }
        let value = self.number(draws, host)?;
        Ok(Fault { kind: self.info.kind, host, from_ns, until_ns, value, name })
    }

    fn window(&self, end_ns: i64, draws: Draws) -> Result<(i64, i64)> {
        let Some(text) = self.times else {
            let start = MIDDLE.0 + (MIDDLE.1 - MIDDLE.0) * draws.unit(0, Purpose::Fault, 1);
            let start_ns = (end_ns as f64 * start) as i64;
            return Ok(match self.info.when {
                When::Never | When::Window(None) => (i64::MIN, FOR_EVER_NS),
                When::Instant => (start_ns, FOR_EVER_NS),
                When::Window(Some(length_s)) => (start_ns, start_ns + (length_s * NS_PER_S) as i64),
            });
        };
        if self.info.when == When::Never {
            return Err(self.wrong("has a time, but holds for the whole run"));
        }
        let (from, until) = match text.split_once('-') {
            Some((from, until)) => (from, Some(until)),
            None => (text, None),
        };
        let time = |text: &str| {
            seconds(text).map(|s| (s * NS_PER_S) as i64).ok_or_else(|| self.wrong(format!("has the time `{text}`")))
        };
        let from_ns = time(from)?;
        if from_ns >= end_ns || from_ns < 0 {
            let end_s = end_ns as f64 / NS_PER_S;
            return Err(self.wrong(format!("begins outside the run, which lasts from 0 to {end_s} s")));
        }
        let until_ns = match (until, self.info.when) {
            (Some(_), When::Instant) => return Err(self.wrong("has two times, but happens at one")),
            (Some(text), _) => time(text)?,
            (None, When::Window(Some(length_s))) => from_ns + (length_s * NS_PER_S) as i64,
            (None, _) => FOR_EVER_NS,
        };
        if until_ns <= from_ns {
            return Err(self.wrong("ends before it begins"));
        }
        Ok((from_ns, until_ns))
    }

    fn number(&self, draws: Draws, host: u32) -> Result<f64> {
        // Uniform in −1 … 1, host by host.
        let drawn = 2.0 * draws.unit(host, Purpose::Fault, 2) - 1.0;
        let Some(text) = self.value else {
            return Ok(match self.info.takes {
                Takes::Nothing | Takes::Name(_) => 0.0,
                Takes::Probability(default) | Takes::PerSecond(default) => default,
                Takes::Offset(default) | Takes::PartsPerMillion(default) => default * drawn,
            });
        };
        let (text, spread) = match text.strip_prefix('±') {
            Some(rest) => (rest, drawn),
            None => (text, 1.0),
        };
        let (value, expected) = match self.info.takes {
            Takes::Nothing => return Err(self.wrong("takes no value")),
            Takes::Name(_) => return Ok(0.0),
            Takes::Probability(_) => (probability(text), "a probability like 1% or 0.01"),
            Takes::Offset(_) => (seconds(text), "a time like +250ms or -3s"),
            Takes::PartsPerMillion(_) => {
                (text.strip_suffix("ppm").and_then(|number| number.parse().ok()), "a drift like +20ppm")
            }
            Takes::PerSecond(_) => (text.parse().ok().filter(|rate: &f64| *rate > 0.0), "a rate a second like 1.25"),
        };
        match value {
            Some(value) if f64::is_finite(value) && f64::abs(value) < 1e9 => Ok(value * spread),
            _ => Err(self.wrong(format!("has the value `{text}`, which is not {expected}"))),
        }
    }
}

fn probability(text: &str) -> Option<f64> {
    let value = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().ok()? / 100.0,
        None => text.parse().ok()?,
    };
    (0.0..=1.0).contains(&value).then_some(value)
}

/// Seconds, with a unit or without.
fn seconds(text: &str) -> Option<f64> {
    let (number, factor) = [("ms", 1e-3), ("us", 1e-6), ("min", 60.0), ("h", 3600.0), ("s", 1.0)]
        .into_iter()
        .find_map(|(unit, factor)| text.strip_suffix(unit).map(|number| (number, factor)))
        .unwrap_or((text, 1.0));
    number.parse::<f64>().ok().map(|value| value * factor).filter(|value| value.is_finite() && value.abs() < 1e9)
}

/// What the faults mean for the network itself.
pub fn disturbances(faults: &[Fault], order: &LogRequest) -> Disturbances {
    let end_ns = order.slot_start_ns(order.slots);
    let mut disturbances = Disturbances::default();
    for fault in faults {
        let absence = |from_ns: i64, until_ns: i64| Absence {
            host: fault.host,
            from_ns: from_ns as u64,
            // A host that is down at the end stays down.
            until_ns: if until_ns >= end_ns { NEVER } else { until_ns as u64 },
        };
        match fault.kind {
            Kind::Late => disturbances.offline.push(absence(0, fault.from_ns)),
            Kind::Restart | Kind::Crash => disturbances.offline.push(absence(fault.from_ns, fault.until_ns)),
            Kind::Stall => disturbances.stalled.push(absence(fault.from_ns, fault.until_ns)),
            Kind::Fork => {
                let slot = (fault.from_ns as f64 / NS_PER_S / order.chain.slot_length_s) as u64;
                disturbances.forced_leaders.push((slot, fault.host));
            }
            _ => {}
        }
    }
    disturbances.offline = merged(std::mem::take(&mut disturbances.offline));
    disturbances.stalled = merged(std::mem::take(&mut disturbances.stalled));
    disturbances
}

/// Absences of one host that touch each other are one.
fn merged(mut absences: Vec<Absence>) -> Vec<Absence> {
    absences.sort_by_key(|absence| (absence.host, absence.from_ns));
    let mut merged: Vec<Absence> = Vec::new();
    for absence in absences {
        match merged.last_mut() {
            Some(last) if last.host == absence.host && absence.from_ns <= last.until_ns => {
                last.until_ns = last.until_ns.max(absence.until_ns);
            }
            _ => merged.push(absence),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{ClusterConfig, Region, Topology};

    fn cluster(hosts: usize) -> Cluster {
        let order = ClusterConfig {
            hosts,
            topology: Topology::TorusDense,
            regions: vec![Region { name: "EU".to_owned(), aliases: Vec::new() }],
            rtt_s: vec![vec![0.001]],
            rtt_spread_s: None,
            fetches: None,
            lost_regions: Vec::new(),
        };
        Cluster::build(&order).unwrap()
    }

    fn parsed(text: &str) -> Result<Fault> {
        let written = Written::split(text)?;
        let draws = Draws::new(1, 2);
        let hosts = written.hosts(&cluster(12), draws)?;
        written.fault(hosts[0], 5000 * 1_000_000_000, draws)
    }

    #[test]
    fn every_kind_is_at_its_index_and_its_example_can_be_parsed() {
        for (place, info) in KINDS.iter().enumerate() {
            assert_eq!(info.kind as usize, place, "{}", info.name);
            assert!(info.example.starts_with(info.name));
            let fault = parsed(info.example).unwrap_or_else(|error| panic!("{}: {error}", info.example));
            assert_eq!(fault.kind, info.kind);
            parsed(info.name).unwrap_or_else(|error| panic!("{} alone: {error}", info.name));
        }
    }

    #[test]
    fn the_host_time_and_value_of_a_fault_are_parsed() {
        let fault = parsed("gap:node-2@500-560.5").unwrap();
        assert_eq!((fault.host, fault.from_ns, fault.until_ns), (2, 500_000_000_000, 560_500_000_000));
        assert_eq!(parsed("dropped:node-5=1%").unwrap().value, 0.01);
        assert_eq!(parsed("clock-offset:node-7=-250ms").unwrap().value, -0.25);
        assert_eq!(parsed("clock-drift:node-7=+20ppm").unwrap().value, 20.0);
        assert!(parsed("clock-offset:node-7=±1s").unwrap().value.abs() < 1.0);
        assert_eq!(parsed("wrong-host:node-1=a.b").unwrap().name, "a.b");
        assert_eq!(parsed("crash:node-3@4000").unwrap().until_ns, i64::MAX);
        assert_eq!(parsed("restart:node-3@1min").unwrap().until_ns, 90_000_000_000, "30 s by default");
        let anywhere = parsed("stall").unwrap();
        assert!(anywhere.host < 12 && anywhere.from_ns > 900_000_000_000 && anywhere.from_ns < 3_600_000_000_000);
    }

    #[test]
    fn impossible_faults_are_refused_in_one_sentence_with_a_hint() {
        for (text, part) in [
            ("explode", "no kind of fault `explode`"),
            ("crash:node-99", "no host `node-99`"),
            ("crash:node-1@9999", "outside the run"),
            ("crash:node-1@soon", "the time `soon`"),
            ("crash:node-1@10-20", "two times"),
            ("crash:all", "all hosts at once"),
            ("gap:node-1@20-10", "ends before it begins"),
            ("dropped=200%", "the value `200%`"),
            ("dropped=", "the value ``"),
            ("clock-drift=5", "the value `5`"),
            ("clock-offset@5=1s", "holds for the whole run"),
            ("truncated=1", "takes no value"),
            ("wrong-host=a\"b", "characters that no host name has"),
        ] {
            let error = parsed(text).unwrap_err().to_string();
            let (message, hint) = error.split_once("\nhint: ").unwrap();
            assert!(message.contains(part), "{text}: {message}");
            assert!(!message.contains('\n') && !hint.is_empty());
        }
    }

    #[test]
    fn adjacent_absences_are_merged() {
        let absence = |host, from_ns, until_ns| Absence { host, from_ns, until_ns };
        let all = vec![absence(1, 50, 90), absence(0, 10, 20), absence(1, 10, 60), absence(0, 20, 30)];
        assert_eq!(merged(all), [absence(0, 10, 30), absence(1, 10, 90)]);
    }
}
