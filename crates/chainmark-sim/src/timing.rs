//! How long each stage takes: the drawn durations of one scenario, in nanoseconds.

use chainmark_random::mix;

use crate::cluster::FetchChange;
use crate::model::{Parameters, Scenario, Stages};
use crate::random::{Draws, LogNormal, Purpose};
use crate::trace::LoopTimes;

pub const NS: f64 = 1e9;
/// No subtraction of a tail's mean leaves less than this part of a stage.
const LEAST_PART: f64 = 0.2;
const LEAST_SHIFTED: f64 = 0.05;
/// The part of the fast blocks' gain that the fast ones are spared, and what the others pay for it.
const FAST_GAIN: f64 = 0.8;

/// The draws for a whole block: its regime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Regime {
    pub fast: bool,
    pub slow: bool,
}

/// The durations of one scenario. Means are kept: what slow blocks and stragglers add on average is subtracted from
/// the stage they fall into.
#[derive(Debug, Clone)]
pub struct Timing {
    loop_ns: [f64; 5],
    ticked_ns: f64,
    snapshot_ns: f64,
    forged_ns: f64,
    announced_ns: f64,
    self_adopted_ns: f64,
    request_ns: f64,
    fetched_to_announced_ns: f64,
    adopted_ns: f64,
    header_ns: f64,
    server_ns: f64,
    client_ns: f64,
    fast_shift_ns: f64,
    other_shift_ns: f64,
    parameters: Parameters,
    forging: LogNormal,
    header: LogNormal,
    body: LogNormal,
    request: LogNormal,
    announcement: LogNormal,
    adoption: LogNormal,
    size: LogNormal,
    shape: Vec<f64>,
    block_bytes: f64,
}

impl Timing {
    pub fn new(scenario: &Scenario) -> Self {
        let (s, p) = (&scenario.stages, scenario.parameters);
        let means = without_tails(s, &p);
        let saved_ns = p.fast_block_share * s.ticked_s * NS;
        Self {
            loop_ns: [s.started_s, s.block_context_s, s.ledger_state_s, s.ledger_view_s, s.leadership_s]
                .map(|mean| mean * NS),
            ticked_ns: means.ticked_s * NS,
            snapshot_ns: means.snapshot_s * NS,
            forged_ns: s.forged_s * NS,
            announced_ns: s.announced_s * NS,
            self_adopted_ns: means.self_adopted_s * NS,
            request_ns: s.request_s * NS,
            fetched_to_announced_ns: s.fetched_to_announced_s * NS,
            adopted_ns: means.adopted_s * NS,
            header_ns: p.header_service_s * NS,
            server_ns: p.body_service_s * p.server_share * NS,
            client_ns: p.body_service_s * (1.0 - p.server_share) * NS,
            fast_shift_ns: -FAST_GAIN * saved_ns,
            other_shift_ns: FAST_GAIN * saved_ns * p.fast_block_probability
                / (1.0 - p.fast_block_probability).max(1e-9),
            parameters: p,
            forging: LogNormal::new(p.forging_variation),
            header: LogNormal::new(p.header_variation),
            body: LogNormal::new(p.body_variation),
            request: LogNormal::new(p.request_variation),
            announcement: LogNormal::new(p.announcement_variation),
            adoption: LogNormal::new(p.adoption_variation),
            size: LogNormal::new(scenario.block_bytes_variation),
            shape: scenario.block_bytes_shape.clone(),
            block_bytes: scenario.block_bytes,
        }
    }

    /// Key of the draws of a block forged by the host of that number in that slot.
    pub fn block_draws(seed: u64, slot: u64, forger: u32) -> Draws {
        Draws::new(seed ^ mix(u64::from(forger) + 1), slot)
    }

    pub fn regime(&self, draws: Draws, slow: Option<bool>) -> Regime {
        let p = &self.parameters;
        Regime {
            fast: draws.chance(0, Purpose::FastBlock, 0, p.fast_block_probability),
            slow: slow.unwrap_or_else(|| draws.chance(0, Purpose::SlowBlock, 0, p.slow_block_probability)),
        }
    }

    pub fn block_bytes(&self, draws: Draws) -> u32 {
        let relative = if self.shape.is_empty() {
            self.size.factor(draws.bits(0, Purpose::BlockSize, 0))
        } else {
            quantile(&self.shape, draws.unit(0, Purpose::BlockSize, 0))
        };
        (self.block_bytes * relative).round().max(1.0) as u32
    }

    /// One iteration of a forge loop up to the decision who leads; the later stages stay at zero.
    pub fn loop_times(&self, draws: Draws, number: u32, slot_start_ns: u64) -> LoopTimes {
        let mut time = slot_start_ns;
        let mut stage = |index: usize| {
            time += self.drawn(&self.forging, self.loop_ns[index], draws.bits(number, Purpose::Forging, index as u32));
            time
        };
        LoopTimes {
            started_ns: stage(0),
            block_context_ns: stage(1),
            ledger_state_ns: stage(2),
            ledger_view_ns: stage(3),
            leadership_ns: stage(4),
            ..LoopTimes::default()
        }
    }

    /// The stages of a leader after the decision.
    pub fn forge(&self, times: &mut LoopTimes, draws: Draws, number: u32, regime: Regime) {
        let bits = |index| draws.bits(number, Purpose::Forging, index);
        let mut ticked = self.drawn(&self.forging, self.shifted(self.ticked_ns, regime), bits(5));
        if regime.slow {
            let mean = self.parameters.slow_forging_s * NS;
            ticked += draws.exponential(number, Purpose::SlowForging, 0, mean) as u64;
        }
        times.ticked_ns = times.leadership_ns + ticked;
        times.snapshot_ns = times.ticked_ns + self.drawn(&self.forging, self.snapshot_ns, bits(6));
        times.forged_ns = times.snapshot_ns + self.drawn(&self.forging, self.forged_ns, bits(7));
    }

    /// Forged to announced.
    pub fn forger_announcement(&self, draws: Draws, number: u32) -> u64 {
        self.drawn(&self.forging, self.announced_ns, draws.bits(number, Purpose::Forging, 8))
    }

    /// Fetched to announced.
    pub fn announcement(&self, draws: Draws, number: u32) -> u64 {
        let bits = draws.bits(number, Purpose::Announcement, 0);
        self.drawn(&self.announcement, self.fetched_to_announced_ns, bits)
    }

    /// Time of a header from one host to the next, without half a round trip.
    #[inline]
    pub fn header(&self, draws: Draws, number: u32, peer: u32) -> u64 {
        self.drawn(&self.header, self.header_ns, draws.bits(number, Purpose::HeaderService, peer))
    }

    /// From a header to the decision to fetch.
    #[inline]
    pub fn request(&self, draws: Draws, number: u32, peer: u32) -> u64 {
        self.drawn(&self.request, self.request_ns, draws.bits(number, Purpose::Request, peer))
    }

    /// What the server spends before it sends a body.
    #[inline]
    pub fn server(&self, draws: Draws, number: u32, peer: u32) -> u64 {
        self.drawn(&self.body, self.server_ns, draws.bits(number, Purpose::ServerService, peer))
    }

    /// What the client spends on a body after its last byte.
    #[inline]
    pub fn client(&self, draws: Draws, number: u32, peer: u32) -> u64 {
        self.drawn(&self.body, self.client_ns, draws.bits(number, Purpose::BodyService, peer))
    }

    /// What a fetch of that duration over a link with that change really lasts.
    #[inline]
    pub fn changed_fetch(&self, fetch_ns: u64, change: FetchChange) -> u64 {
        let factor = self.parameters.fetch_factor * change.factor;
        if factor == 1.0 && change.more_s == 0.0 {
            return fetch_ns;
        }
        (fetch_ns as f64 * factor + change.more_s * NS).max(0.0) as u64
    }

    /// Validation of a block: (usual time, what a slow block or a straggler adds).
    pub fn adoption(&self, draws: Draws, number: u32, regime: Regime, own: bool) -> (u64, u64) {
        let purpose = if own { Purpose::SelfAdoption } else { Purpose::Adoption };
        let mean = if own { self.self_adopted_ns } else { self.adopted_ns };
        let usual = self.drawn(&self.adoption, self.shifted(mean, regime), draws.bits(number, purpose, 0));
        let p = &self.parameters;
        let mut extra = 0.0;
        if regime.slow {
            extra += draws.exponential(number, Purpose::SlowAdoption, 0, p.slow_adoption_s * NS);
        }
        if !own && draws.chance(number, Purpose::Straggler, 0, p.straggler_probability) {
            extra += draws.exponential(number, Purpose::StragglerLength, 0, p.straggler_s * NS);
        }
        (usual, extra as u64)
    }

    fn shifted(&self, mean_ns: f64, regime: Regime) -> f64 {
        let shift = if regime.fast { self.fast_shift_ns } else { self.other_shift_ns };
        (mean_ns + shift).max(mean_ns * LEAST_SHIFTED)
    }

    #[inline]
    fn drawn(&self, distribution: &LogNormal, mean_ns: f64, bits: u64) -> u64 {
        (mean_ns * distribution.factor(bits)) as u64
    }
}

/// The value at that share of evenly spaced ones.
fn quantile(values: &[f64], share: f64) -> f64 {
    let place = share * (values.len() - 1) as f64;
    let low = (place as usize).min(values.len() - 2);
    values[low] + (values[low + 1] - values[low]) * (place - low as f64)
}

/// The stage means without what slow blocks and stragglers add to them on average.
fn without_tails(stages: &Stages, p: &Parameters) -> Stages {
    let mut means = *stages;
    let mut forging = p.slow_block_probability * p.slow_forging_s;
    for mean in [&mut means.ticked_s, &mut means.snapshot_s] {
        let taken = forging.min(*mean * (1.0 - LEAST_PART));
        *mean -= taken;
        forging -= taken;
    }
    let slow = p.slow_block_probability * p.slow_adoption_s;
    let less = |mean: f64, tail: f64| (mean - tail).max(mean * LEAST_PART);
    means.self_adopted_s = less(means.self_adopted_s, slow);
    means.adopted_s = less(means.adopted_s, slow + p.straggler_probability * p.straggler_s);
    means
}
