//! Averages over many blocks, in batches: the spread between batches gives the Monte Carlo error.

use rayon::prelude::*;

use crate::cluster::Cluster;
use crate::error::{Result, SimulationError};
use crate::model::Scenario;
use crate::propagation::{Forge, Propagation, STAGES, Spread};
use crate::random::{Draws, Purpose};
use crate::timing::{NS, Timing};
use crate::trace::NEVER;

/// The shares of the adopting hosts whose adoption time is published.
pub const CENTILES: [(&str, f64); 8] = [
    ("p50", 0.50),
    ("p80", 0.80),
    ("p90", 0.90),
    ("p92", 0.92),
    ("p94", 0.94),
    ("p96", 0.96),
    ("p98", 0.98),
    ("p100", 1.00),
];
const CURVE_POINTS: usize = 40;
/// Slow blocks are a separate stratum, with this factor fewer blocks.
const SLOW_SHARE: usize = 4;
/// Set apart from the numbers of ordinary blocks, so that the two strata share no draws.
const SLOW_OFFSET: u64 = 1 << 40;

const STAGE_FIGURES: [&str; 28] = [
    "forge_started_s",
    "forge_block_context_s",
    "forge_ledger_state_s",
    "forge_ledger_view_s",
    "forge_leadership_s",
    "forge_ticked_s",
    "forge_snapshot_s",
    "forge_forged_s",
    "forge_announced_s",
    "forge_sending_s",
    "forge_self_adopted_s",
    "slot_to_announced_s",
    "peer_notice_first_s",
    "peer_fetch_first_s",
    "peer_request_s",
    "peer_fetch_s",
    "peer_announced_s",
    "peer_sending_s",
    "peer_adopted_s",
    "adoption_p50_s",
    "adoption_p80_s",
    "adoption_p90_s",
    "adoption_p92_s",
    "adoption_p94_s",
    "adoption_p96_s",
    "adoption_p98_s",
    "adoption_p100_s",
    "block_size_bytes",
];
const OTHER_FIGURES: [&str; 3] = ["rounds_mean", "inter_region_share", "requests_per_block"];
/// The first of the other figures, followed by the fetch durations by pair of regions.
const OTHERS: usize = STAGE_FIGURES.len() + CURVE_POINTS + STAGES.len() * CENTILES.len();
const FETCHES: usize = OTHERS + OTHER_FIGURES.len();

/// The names of the figures that every cluster has, in the order of the columns.
pub fn figure_names() -> Vec<String> {
    let mut names: Vec<String> = STAGE_FIGURES.iter().map(|name| (*name).to_owned()).collect();
    names.extend((1..=CURVE_POINTS).map(|i| format!("curve_{:.3}", i as f64 / CURVE_POINTS as f64)));
    for stage in STAGES {
        names.extend(CENTILES.iter().map(|(centile, _)| format!("part_{stage}_{centile}")));
    }
    names.extend(OTHER_FIGURES.iter().map(|name| (*name).to_owned()));
    names
}

/// The mean fetch durations over the links between two regions, or within one, either way: "fetch_0_2_s".
fn fetch_names(regions: usize) -> impl Iterator<Item = String> {
    (0..regions).flat_map(move |a| (a..regions).map(move |b| format!("fetch_{a}_{b}_s")))
}

/// The place of a pair of regions among the fetch durations.
fn fetch_place(regions: usize, one: usize, other: usize) -> usize {
    let (a, b) = (one.min(other), one.max(other));
    a * (2 * regions - a + 1) / 2 + b - a
}

/// Which batches to simulate.
#[derive(Debug, Clone, Copy)]
pub struct BatchRequest {
    pub blocks_per_batch: usize,
    pub first_batch: usize,
    pub batches: usize,
    /// 0: all cores.
    pub threads: usize,
}

/// The figures of some batches; `[batch][figure]`, NaN if there was nothing to measure.
#[derive(Debug, Clone, PartialEq)]
pub struct Batches {
    pub figures: Vec<String>,
    pub normal: Vec<Vec<f64>>,
    pub slow: Vec<Vec<f64>>,
    pub events: u64,
    pub blocks: u64,
}

/// Simulate batches of blocks. A batch is a function of the scenario, its number and its size alone.
///
/// # Errors
/// The scenario is impossible, or no blocks were ordered.
pub fn simulate(scenario: &Scenario, order: &BatchRequest) -> Result<Batches> {
    scenario.check()?;
    if order.blocks_per_batch == 0 || order.batches == 0 {
        return Err(SimulationError::impossible("no blocks were ordered", "order at least one block a batch"));
    }
    let cluster = Cluster::build(&scenario.cluster)?;
    let timing = Timing::new(scenario);
    let numbers: Vec<usize> = (order.first_batch..order.first_batch + order.batches).collect();
    let simulate = |&number: &usize| batch(scenario, &cluster, &timing, number, order.blocks_per_batch);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(order.threads).build();
    let pool = pool.map_err(|error| SimulationError::impossible(error.to_string(), "order fewer threads"))?;
    let done: Vec<_> = pool.install(|| numbers.par_iter().map(simulate).collect());
    let figures = figure_names().into_iter().chain(fetch_names(cluster.regions.len())).collect();
    let mut batches = Batches { figures, normal: Vec::new(), slow: Vec::new(), events: 0, blocks: 0 };
    for (normal, slow) in done {
        batches.events += normal.events + slow.events;
        batches.blocks += normal.blocks + slow.blocks;
        batches.normal.push(normal.means());
        batches.slow.push(slow.means());
    }
    Ok(batches)
}

fn batch(scenario: &Scenario, cluster: &Cluster, timing: &Timing, number: usize, size: usize) -> (Sums, Sums) {
    let normal = stratum(scenario, cluster, timing, (number * size) as u64, size, false);
    let slow_size = (size / SLOW_SHARE).max(1);
    let slow = stratum(scenario, cluster, timing, SLOW_OFFSET + (number * slow_size) as u64, slow_size, true);
    (normal, slow)
}

fn stratum(s: &Scenario, cluster: &Cluster, timing: &Timing, first: u64, size: usize, slow: bool) -> Sums {
    let mut propagation = Propagation::new(cluster, timing, s);
    let mut sums = Sums::new(cluster);
    let mut time_ns = 0;
    let forgers = Forgers::new(cluster, s.seed);
    let blocks = (first..first + size as u64).map(|number| {
        let draws = Draws::new(s.seed, number);
        time_ns += (draws.exponential(0, Purpose::Interval, 0, s.block_interval_s) * NS) as u64;
        Forge { draws, slot_start_ns: time_ns, forger: forgers.of(number), slow }
    });
    propagation.run(blocks, |spread| sums.add(cluster, spread));
    sums.events = propagation.events;
    sums
}

/// Number of consecutive blocks in which every region forges its share; within them the order is random, like leaders.
const BALANCED_BLOCKS: usize = 48;

/// The forger of each block: rounds in which every pool forges once, in random order. Any longer sequence of blocks is
/// balanced over the regions, which removes the largest sampling noise, but neighbours are independent: whether the
/// previous block used a link decides the size of its window.
struct Forgers<'a> {
    cluster: &'a Cluster,
    seed: u64,
    round: std::cell::RefCell<Option<(u64, Vec<u32>)>>,
}

impl<'a> Forgers<'a> {
    fn new(cluster: &'a Cluster, seed: u64) -> Self {
        Self { cluster, seed, round: std::cell::RefCell::new(None) }
    }

    fn of(&self, block: u64) -> u32 {
        let blocks: u64 = self.cluster.pools.iter().map(|&pools| u64::from(pools)).sum();
        let (round, place) = (block / blocks, (block % blocks) as usize);
        let mut known = self.round.borrow_mut();
        match &*known {
            Some((number, order)) if *number == round => order[place],
            _ => known.insert((round, self.order(round))).1[place],
        }
    }

    fn order(&self, round: u64) -> Vec<u32> {
        let draws = Draws::new(self.seed, round);
        let mut members = vec![Vec::new(); self.cluster.regions.len()];
        for (host, region) in self.cluster.region_of.iter().enumerate() {
            for pool in 0..self.cluster.pools[host] {
                // 1 is the region's, below; a host with one pool draws 0 and 2.
                let bits = |index| draws.bits(self.cluster.numbers[host], Purpose::Shuffle, index);
                let (first, second) = if pool == 0 { (0, 2) } else { (2 * pool + 1, 2 * pool + 2) };
                members[*region].push((bits(first), bits(second), host as u32));
            }
        }
        let mut places: Vec<(f64, u32, u64)> = Vec::new();
        for (region, hosts) in members.iter_mut().enumerate() {
            hosts.sort_unstable();
            let n = hosts.len() as f64;
            let turn = draws.unit(region as u32, Purpose::Shuffle, 1);
            let place = |(i, (_, bits, host)): (usize, &(u64, u64, u32))| ((i as f64 + turn) / n, *host, *bits);
            places.extend(hosts.iter().enumerate().map(place));
        }
        places.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for stretch in places.chunks_mut(BALANCED_BLOCKS) {
            stretch.sort_by_key(|&(_, _, bits)| bits);
        }
        places.into_iter().map(|(_, host, _)| host).collect()
    }
}

/// A sum of samples and their number.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    total: f64,
    n: f64,
}

struct Sums {
    figures: Vec<Sum>,
    order: Vec<(u64, u32)>,
    ranks: Vec<usize>,
    curve_ranks: Vec<usize>,
    blocks: u64,
    events: u64,
}

impl Sums {
    fn new(cluster: &Cluster) -> Self {
        let n = cluster.hosts();
        let rank = |fraction: f64| ((n as f64 * fraction).floor() as usize).min(n - 1);
        let reached = |i: usize| (n * i).div_ceil(CURVE_POINTS).max(1) - 1;
        Self {
            figures: vec![Sum::default(); figure_names().len() + fetch_names(cluster.regions.len()).count()],
            order: Vec::with_capacity(n),
            ranks: CENTILES.iter().map(|(_, fraction)| rank(*fraction)).collect(),
            curve_ranks: (1..=CURVE_POINTS).map(reached).collect(),
            blocks: 0,
            events: 0,
        }
    }

    fn means(&self) -> Vec<f64> {
        self.figures.iter().map(|sum| if sum.n > 0.0 { sum.total / sum.n } else { f64::NAN }).collect()
    }

    fn put(&mut self, figure: usize, total: f64, n: f64) {
        self.figures[figure].total += total;
        self.figures[figure].n += n;
    }

    fn add(&mut self, cluster: &Cluster, block: &Spread<'_>) {
        self.blocks += 1;
        self.add_forging(block);
        self.add_peers(cluster, block);
        self.add_adoption(block);
        self.put(27, f64::from(block.bytes), 1.0);
    }

    fn add_forging(&mut self, block: &Spread<'_>) {
        let (t, slot) = (&block.times, block.slot_start_ns);
        let times = [
            slot,
            t.started_ns,
            t.block_context_ns,
            t.ledger_state_ns,
            t.ledger_view_ns,
            t.leadership_ns,
            t.ticked_ns,
            t.snapshot_ns,
            t.forged_ns,
        ];
        for (figure, pair) in times.windows(2).enumerate() {
            self.put(figure, seconds(pair[1] - pair[0]), 1.0);
        }
        let host = &block.hosts[block.forger as usize];
        let forged = t.forged_ns - slot;
        self.put(8, seconds(host.announced_ns - forged), 1.0);
        if host.sent_ns != NEVER {
            self.put(9, seconds(host.sent_ns - forged), 1.0);
        }
        self.put(10, seconds(host.adopted_ns - forged), 1.0);
        self.put(11, seconds(host.announced_ns), 1.0);
    }

    fn add_peers(&mut self, cluster: &Cluster, block: &Spread<'_>) {
        let mut first = (NEVER, NEVER);
        let mut sums = [Sum::default(); 5];
        let (mut rounds, mut requests) = (Sum::default(), 0);
        let mut from_afar = 0.0;
        for (index, host) in block.hosts.iter().enumerate() {
            if index as u32 == block.forger {
                continue;
            }
            first = (first.0.min(host.noticed_ns), first.1.min(host.fetched_ns));
            let spans = [
                (host.noticed_ns, host.requested_ns),
                (host.requested_ns, host.fetched_ns),
                (host.fetched_ns, host.announced_ns),
                (host.fetched_ns, host.sent_ns),
                (host.fetched_ns, host.adopted_ns),
            ];
            for (sum, (from, to)) in sums.iter_mut().zip(spans) {
                if to != NEVER {
                    sum.total += seconds(to - from);
                    sum.n += 1.0;
                }
            }
            requests += host.requests;
            let source = &cluster.upstream[index][host.source as usize];
            let regions = (cluster.region_of[index], cluster.region_of[source.host as usize]);
            let pair = fetch_place(cluster.regions.len(), regions.0, regions.1);
            self.put(FETCHES + pair, seconds(host.fetched_ns - host.requested_ns), 1.0);
            if !source.in_region {
                from_afar += 1.0;
                rounds.total += f64::from(host.rounds);
                rounds.n += 1.0;
            }
        }
        self.put(12, seconds(first.0), 1.0);
        self.put(13, seconds(first.1), 1.0);
        for (offset, sum) in sums.iter().enumerate() {
            self.put(14 + offset, sum.total, sum.n);
        }
        self.put(OTHERS, rounds.total, rounds.n);
        self.put(OTHERS + 1, from_afar, block.hosts.len() as f64 - 1.0);
        self.put(OTHERS + 2, f64::from(requests), 1.0);
    }

    fn add_adoption(&mut self, block: &Spread<'_>) {
        self.order.clear();
        self.order.extend(block.hosts.iter().enumerate().map(|(host, state)| (state.adopted_ns, host as u32)));
        self.order.sort_unstable();
        for (centile, rank) in self.ranks.clone().into_iter().enumerate() {
            let (adopted, host) = self.order[rank];
            self.put(19 + centile, seconds(adopted), 1.0);
            for (stage, part) in block.parts[host as usize].iter().enumerate() {
                let figure = STAGE_FIGURES.len() + CURVE_POINTS + stage * CENTILES.len() + centile;
                self.put(figure, seconds(*part), 1.0);
            }
        }
        for point in 0..CURVE_POINTS {
            let (adopted, _) = self.order[self.curve_ranks[point]];
            self.put(STAGE_FIGURES.len() + point, seconds(adopted), 1.0);
        }
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / NS
}
