//! Invariants of every simulated network: causes come before effects, chains grow, battles are decided.

mod common;

use std::collections::HashMap;

use chainmark_sim::chain::{Absence, ChainConfig, ChainRun, Disturbances};
use chainmark_sim::cluster::Cluster;
use chainmark_sim::model::Scenario;
use chainmark_sim::prediction::{BatchRequest, figure_names, simulate};
use chainmark_sim::trace::{Block, BlockNumber, GENESIS, LoopTimes, Observer, Selection};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

#[derive(Default, Clone)]
struct AtHost {
    noticed: Option<u64>,
    /// By peer.
    headers: HashMap<u32, u64>,
    requests: Vec<(u64, u32, u32)>,
    sent_to: HashMap<u32, u64>,
    fetched: Option<u64>,
    announced: HashMap<u32, u64>,
    adopted: Option<u64>,
    stored: bool,
}

#[derive(Default)]
struct Recorder {
    blocks: Vec<(Block, LoopTimes)>,
    at: HashMap<(BlockNumber, u32), AtHost>,
    switches: usize,
    rollbacks: usize,
    reached: u64,
    late: usize,
}

impl Recorder {
    fn at(&mut self, time: u64, block: BlockNumber, host: u32) -> &mut AtHost {
        self.late += usize::from(time < self.reached);
        self.at.entry((block, host)).or_default()
    }

    fn block(&self, number: BlockNumber) -> &Block {
        &self.blocks.iter().find(|(block, _)| block.number == number).expect("every block was forged").0
    }
}

impl Observer for Recorder {
    fn forged(&mut self, block: &Block, times: &LoopTimes) {
        self.blocks.push((*block, *times));
    }

    fn header(&mut self, time: u64, host: u32, peer: u32, block: &Block) {
        let at = self.at(time, block.number, host);
        at.noticed.get_or_insert(time);
        at.headers.entry(peer).or_insert(time);
    }

    fn requested(&mut self, time: u64, host: u32, peer: u32, head: &Block, length: u32) {
        self.at(time, head.number, host).requests.push((time, peer, length));
    }

    fn sent(&mut self, time: u64, peer: u32, host: u32, block: &Block) {
        self.at(time, block.number, peer).sent_to.entry(host).or_insert(time);
    }

    fn fetched(&mut self, time: u64, host: u32, _peer: u32, block: &Block, first: bool) {
        let at = self.at(time, block.number, host);
        assert_eq!(first, at.fetched.is_none(), "the first copy is the first");
        at.fetched.get_or_insert(time);
    }

    fn announced(&mut self, time: u64, host: u32, peer: u32, block: &Block, rollback: Option<&Block>) {
        self.rollbacks += usize::from(rollback.is_some());
        self.at(time, block.number, host).announced.entry(peer).or_insert(time);
    }

    fn selected(&mut self, time: u64, host: u32, block: &Block, selection: Selection) {
        self.switches += usize::from(matches!(selection, Selection::Switched { .. }));
        let at = self.at(time, block.number, host);
        match selection {
            Selection::Stored => at.stored = true,
            _ => at.adopted = Some(time),
        }
    }

    fn reached(&mut self, time: u64) {
        self.reached = time;
    }
}

fn order(slots: u64, disturbances: Disturbances) -> ChainConfig {
    ChainConfig { slots, slot_length_s: 1.0, active_slots_coefficient: 0.05, disturbances, retained_blocks: 0 }
}

fn lived(scenario: &Scenario, order: &ChainConfig) -> (ChainRun, Recorder) {
    let mut run = ChainRun::new(scenario, order).expect("the scenario is possible");
    let mut recorder = Recorder::default();
    for chunk in 1.. {
        run.advance(chunk * 100 * SECOND, &mut recorder);
        if run.finished() || chunk > order.slots / 100 + 100 {
            break;
        }
    }
    assert_eq!(recorder.late, 0, "no event may be reported for a past time");
    (run, recorder)
}

fn rtt_ns(cluster: &Cluster, host: u32, peer: u32) -> u64 {
    let link = cluster.upstream[host as usize].iter().find(|link| link.host == peer).expect("they are connected");
    (link.rtt_s * 1e9) as u64
}

/// Causality at every host: a header after its announcement by half a round trip, a request after a header, a body
/// after the request by a whole round trip, an adoption after the body.
fn check_causes(cluster: &Cluster, recorder: &Recorder) {
    for ((number, host), at) in &recorder.at {
        let block = recorder.block(*number);
        let forged = block.forger == *host;
        for (peer, time) in &at.headers {
            let announced = recorder.at.get(&(*number, *peer)).and_then(|peer| peer.announced.get(host));
            if let Some(announced) = announced {
                assert!(*time >= announced + rtt_ns(cluster, *host, *peer) / 2 - 1, "faster than light");
            }
        }
        for (time, peer, length) in &at.requests {
            assert!(*time >= at.headers[peer], "asked a peer that had not announced it");
            assert!(*length >= 1);
        }
        if let (Some(fetched), false) = (at.fetched, forged) {
            let first = recorder
                .at
                .iter()
                .filter(|((_, other), _)| other == host)
                .flat_map(|(_, at)| &at.requests)
                .filter(|(time, peer, _)| time + rtt_ns(cluster, *host, *peer) <= fetched + 1);
            assert!(first.count() > 0, "a body came before a request and a round trip");
        }
        if let Some(adopted) = at.adopted {
            let body = if forged {
                recorder.blocks.iter().find(|(b, _)| b.number == *number).map(|(_, t)| t.forged_ns)
            } else {
                at.fetched
            };
            assert!(adopted >= body.expect("an adopted block has a body"), "adopted before it was there");
        }
        for announced in at.announced.values() {
            assert!(forged || at.fetched.is_some_and(|fetched| *announced >= fetched), "announced before it was there");
        }
    }
}

/// Every block's height is its parent's plus one, its slot is later, and every host ends on the best chain.
fn check_chain(run: &ChainRun, recorder: &Recorder) {
    for (block, times) in &recorder.blocks {
        if block.parent != GENESIS {
            let parent = recorder.block(block.parent);
            assert_eq!(block.height, parent.height + 1);
            assert!(block.slot > parent.slot);
        }
        assert!(times.forged_ns >= run.slot_start_ns(block.slot));
    }
    let best = run.block(run.best_tip());
    for host in 0..run.cluster().hosts() as u32 {
        let tip = run.block(run.tip_of(host));
        assert_eq!((tip.height, tip.vrf), (best.height, best.vrf), "host {host} is on another chain");
    }
}

#[test]
fn the_benchmark_cluster_grows_one_chain() {
    let (run, recorder) = lived(&common::value_only(52, 7), &order(4000, Disturbances::default()));
    check_causes(run.cluster(), &recorder);
    check_chain(&run, &recorder);
    let blocks = recorder.blocks.len() as f64;
    assert!((blocks - 4000.0 * 0.05 * 1.026).abs() < 4.0 * (4000.0_f64 * 0.05).sqrt(), "{blocks} blocks");
    let chained = (1..=run.best_tip()).filter(|&number| run.on_chain(number)).count();
    assert!(chained as f64 > 0.9 * blocks && chained <= recorder.blocks.len());
}

#[test]
fn two_leaders_of_one_slot_fight_and_the_smaller_vrf_wins() {
    let forced = (10..40).map(|i| (i * 40, 5)).chain((10..40).map(|i| (i * 40, 40))).collect();
    let disturbances = Disturbances { forced_leaders: forced, ..Disturbances::default() };
    let (run, recorder) = lived(&common::value_only(52, 3), &order(2000, disturbances));
    check_causes(run.cluster(), &recorder);
    check_chain(&run, &recorder);
    let mut battles = 0;
    for (block, _) in &recorder.blocks {
        let rival = recorder.blocks.iter().find(|(other, _)| other.slot == block.slot && other.number < block.number);
        let Some((rival, _)) = rival else { continue };
        if rival.height != block.height {
            continue;
        }
        battles += 1;
        let survivors = [rival, block].map(|block| run.on_chain(block.number));
        assert!(!(survivors[0] && survivors[1]));
        if survivors[0] || survivors[1] {
            assert_eq!(survivors[0], rival.vrf < block.vrf, "the larger VRF won at height {}", block.height);
        }
    }
    assert!(battles >= 25, "{battles} battles");
    assert!(recorder.switches > 0 && recorder.rollbacks > 0);
}

#[test]
fn a_stalled_host_fetches_several_blocks_at_once() {
    let stalled = vec![Absence { host: 9, from_ns: 300 * SECOND, until_ns: 500 * SECOND }];
    let (run, recorder) =
        lived(&common::value_only(52, 5), &order(1000, Disturbances { stalled, ..Default::default() }));
    check_causes(run.cluster(), &recorder);
    check_chain(&run, &recorder);
    let longest = recorder.at.iter().filter(|((_, host), _)| *host == 9).flat_map(|(_, at)| &at.requests);
    assert!(longest.map(|(_, _, length)| *length).max() > Some(3));
}

#[test]
fn an_absent_host_catches_up_and_a_crashed_one_stays_silent() {
    let offline = vec![
        Absence { host: 3, from_ns: 0, until_ns: 400 * SECOND },
        Absence { host: 8, from_ns: 200 * SECOND, until_ns: 230 * SECOND },
    ];
    let (run, recorder) =
        lived(&common::value_only(52, 11), &order(1000, Disturbances { offline, ..Default::default() }));
    check_causes(run.cluster(), &recorder);
    check_chain(&run, &recorder);
    let first = recorder.at.iter().filter(|((_, host), _)| *host == 3).filter_map(|(_, at)| at.noticed).min();
    assert!(first >= Some(400 * SECOND));

    let offline = vec![Absence { host: 8, from_ns: 200 * SECOND, until_ns: u64::MAX }];
    let disturbances = Disturbances { offline, ..Default::default() };
    let (_, recorder) = lived(&common::value_only(52, 11), &order(1000, disturbances));
    let after = recorder.at.iter().filter(|((_, host), _)| *host == 8).filter_map(|(_, at)| at.adopted);
    assert!(after.max() < Some(200 * SECOND));
}

/// The living network and the independent blocks are two drivers of one model.
#[test]
fn both_drivers_give_the_same_stages_within_their_errors() {
    let scenario = common::value_only(52, 21);
    let (_, recorder) = lived(&scenario, &order(40_000, Disturbances::default()));
    let mut fetch = Vec::new();
    let mut adopt = Vec::new();
    for at in recorder.at.values() {
        let (Some(fetched), Some(adopted), Some((requested, _, 1))) = (at.fetched, at.adopted, at.requests.first())
        else {
            continue;
        };
        fetch.push((fetched - requested) as f64 / 1e9);
        adopt.push((adopted - fetched) as f64 / 1e9);
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let batches = BatchRequest { blocks_per_batch: 104, first_batch: 0, batches: 16, threads: 0 };
    let done = simulate(&scenario, &batches).expect("possible");
    let names = figure_names();
    let q = scenario.parameters.slow_block_probability;
    let of = |name: &str| {
        let column = names.iter().position(|figure| figure == name).expect("known");
        let average = |rows: &[Vec<f64>]| rows.iter().map(|row| row[column]).sum::<f64>() / rows.len() as f64;
        (1.0 - q) * average(&done.normal) + q * average(&done.slow)
    };
    assert!((mean(&fetch) / of("peer_fetch_s") - 1.0).abs() < 0.03, "{} {}", mean(&fetch), of("peer_fetch_s"));
    assert!((mean(&adopt) / of("peer_adopted_s") - 1.0).abs() < 0.06, "{} {}", mean(&adopt), of("peer_adopted_s"));
}

#[test]
fn parts_add_up_to_the_total_for_every_centile_and_batch() {
    let order = BatchRequest { blocks_per_batch: 30, first_batch: 0, batches: 4, threads: 0 };
    for hosts in [2, 7, 52] {
        let done = simulate(&common::value_only(hosts, 1), &order).expect("possible");
        let names = figure_names();
        for row in done.normal.iter().chain(&done.slow) {
            for centile in ["p50", "p80", "p90", "p92", "p94", "p96", "p98", "p100"] {
                let whole = row[names.iter().position(|n| *n == format!("adoption_{centile}_s")).expect("known")];
                let ends = format!("_{centile}");
                let parts = names.iter().zip(row).filter(|(n, _)| n.starts_with("part_") && n.ends_with(&ends));
                let sum: f64 = parts.map(|(_, value)| value).sum();
                // Half round trips are rounded to nanoseconds, once a hop and direction.
                assert!((sum - whole).abs() < 1e-7, "{hosts} {centile}: {sum} {whole}");
            }
        }
    }
}

#[test]
fn threads_do_not_change_a_digit_and_batches_are_independent() {
    let scenario = common::value_only(52, 9);
    let order = |first_batch, batches, threads| BatchRequest { blocks_per_batch: 52, first_batch, batches, threads };
    let one = simulate(&scenario, &order(0, 8, 1)).expect("possible");
    let many = simulate(&scenario, &order(0, 8, 8)).expect("possible");
    assert_eq!(one, many);
    let later = simulate(&scenario, &order(5, 3, 2)).expect("possible");
    assert_eq!(one.normal[5..], later.normal[..]);
}

/// Mean and standard error over batches.
fn estimate(done: &chainmark_sim::prediction::Batches, column: usize) -> (f64, f64) {
    let values: Vec<f64> = done.normal.iter().map(|row| row[column]).collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

/// Were the standard errors too small, a reader would take chance for a change.
#[test]
fn another_seed_gives_the_same_figures_within_their_standard_errors() {
    let names = figure_names();
    let order = BatchRequest { blocks_per_batch: 52, first_batch: 0, batches: 32, threads: 0 };
    for bytes in [3_000.0, 89_000.0] {
        let runs: Vec<_> = (1..=8)
            .map(|seed| {
                let mut scenario = common::value_only(52, seed);
                scenario.block_bytes = bytes;
                scenario.cluster.rtt_spread_s = Some(vec![vec![0.003; 3]; 3]);
                simulate(&scenario, &order).expect("possible")
            })
            .collect();
        for name in ["adoption_p50_s", "adoption_p80_s", "adoption_p100_s", "peer_fetch_s", "slot_to_announced_s"] {
            let column = names.iter().position(|figure| figure == name).expect("known");
            let estimates: Vec<_> = runs.iter().map(|done| estimate(done, column)).collect();
            let mean = estimates.iter().map(|(mean, _)| mean).sum::<f64>() / 8.0;
            let chi_squared: f64 = estimates.iter().map(|(value, error)| ((value - mean) / error).powi(2)).sum();
            // 7 degrees of freedom: 24.3 is passed by chance once in a thousand times.
            assert!(chi_squared < 24.3, "{name} at {bytes} B: {chi_squared:.1}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn causes_precede_effects_under_any_disturbance(
        seed in 0u64..1000,
        hosts in 2usize..40,
        away in prop::collection::vec((0u32..40, 0u64..600, 1u64..200, prop::bool::ANY), 0..4),
        forced in prop::collection::vec((1u64..600, 0u32..40), 0..10),
    ) {
        let n = hosts as u32;
        let absence = |(host, from, length, _): &(u32, u64, u64, bool)| Absence {
            host: host % n, from_ns: from * SECOND, until_ns: (from + length) * SECOND,
        };
        let disturbances = Disturbances {
            offline: away.iter().filter(|period| period.3).map(absence).collect(),
            stalled: away.iter().filter(|period| !period.3).map(absence).collect(),
            forced_leaders: forced.iter().map(|(slot, host)| (*slot, host % n)).collect(),
        };
        let (run, recorder) = lived(&common::value_only(hosts, seed), &order(700, disturbances));
        check_causes(run.cluster(), &recorder);
        for (block, _) in &recorder.blocks {
            if block.parent != GENESIS {
                prop_assert_eq!(block.height, recorder.block(block.parent).height + 1);
            }
        }
    }
}
