//! The input of the simulation: the cluster, the durations of the stages, and the constants of transport and
//! scheduling.

use serde::{Deserialize, Serialize};

use crate::cluster::ClusterConfig;
use crate::error::{Result, SimulationError};

/// Mean durations of the stages, in seconds: those of the published tables, by what each is measured from.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Stages {
    /// Slot start to the start of the forge loop's iteration.
    pub started_s: f64,
    /// Loop start to block context.
    pub block_context_s: f64,
    /// Block context to ledger state.
    pub ledger_state_s: f64,
    /// Ledger state to ledger view.
    pub ledger_view_s: f64,
    /// Ledger view to the decision who leads.
    pub leadership_s: f64,
    /// Decision to the ticked ledger state.
    pub ticked_s: f64,
    /// Ticked ledger state to the mempool's snapshot.
    pub snapshot_s: f64,
    /// Snapshot to the forged block.
    pub forged_s: f64,
    /// Forged to announced.
    pub announced_s: f64,
    /// Forged to adopted by the forger.
    pub self_adopted_s: f64,
    /// Header noticed to body requested.
    pub request_s: f64,
    /// Body fetched to announced downstream.
    pub fetched_to_announced_s: f64,
    /// Body fetched to adopted.
    pub adopted_s: f64,
}

/// The constants of the model. The defaults are the study's, which docs/concepts/simulation.md explains one by one.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// Serving and validating a header, without half a round trip.
    pub header_service_s: f64,
    /// Reading, sending and receiving a body, without the round trips.
    pub body_service_s: f64,
    /// The part of the body's service that the server spends before it sends.
    pub server_share: f64,
    /// Every fetch, from the request to the body, is multiplied by this factor: the rest is spent after the last byte.
    pub fetch_factor: f64,
    pub segment_bytes: f64,
    pub segment_bytes_in_region: f64,
    pub initial_window_segments: f64,
    pub window_limit_segments: f64,
    /// Time in which a grown congestion window shrinks by half while idle.
    pub window_memory_s: f64,
    pub bandwidth_bytes_per_s: f64,
    pub fetch_concurrency: u32,
    pub decision_interval_s: f64,
    /// Announce a body before it is validated.
    pub pipelining: bool,
    pub fast_block_probability: f64,
    /// The part of the mean ledger ticking that fast blocks are spared, before the mean is restored.
    pub fast_block_share: f64,
    pub slow_block_probability: f64,
    pub slow_forging_s: f64,
    pub slow_adoption_s: f64,
    pub straggler_probability: f64,
    pub straggler_s: f64,
    pub forging_variation: f64,
    pub header_variation: f64,
    pub body_variation: f64,
    pub request_variation: f64,
    pub announcement_variation: f64,
    pub adoption_variation: f64,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            header_service_s: 0.0025,
            body_service_s: 0.0115,
            server_share: 0.25,
            fetch_factor: 1.0,
            segment_bytes: 1448.0,
            segment_bytes_in_region: 8949.0,
            initial_window_segments: 10.0,
            window_limit_segments: 400.0,
            window_memory_s: 3.0,
            bandwidth_bytes_per_s: 280e6,
            fetch_concurrency: 4,
            decision_interval_s: 0.010,
            pipelining: true,
            fast_block_probability: 0.2,
            fast_block_share: 0.75,
            slow_block_probability: 0.01,
            slow_forging_s: 0.5,
            slow_adoption_s: 1.0,
            straggler_probability: 0.003,
            straggler_s: 0.15,
            forging_variation: 0.12,
            header_variation: 0.6,
            body_variation: 0.7,
            request_variation: 0.6,
            announcement_variation: 0.5,
            adoption_variation: 0.10,
        }
    }
}

/// A network under a workload. `block_bytes` is the mean size, `block_bytes_variation` its coefficient of variation,
/// used if no shape is known.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub seed: u64,
    pub cluster: ClusterConfig,
    pub stages: Stages,
    #[serde(default)]
    pub parameters: Parameters,
    pub block_bytes: f64,
    #[serde(default)]
    pub block_bytes_variation: f64,
    /// Sizes over their mean at evenly spaced shares of the blocks, ascending; if known, sizes are drawn from them.
    #[serde(default)]
    pub block_bytes_shape: Vec<f64>,
    /// Mean time between blocks.
    pub block_interval_s: f64,
}

impl Scenario {
    /// Read a scenario from JSON and check it.
    ///
    /// # Errors
    /// Not JSON, an unknown or missing key, or a value that nature does not allow.
    pub fn from_json(json: &str) -> Result<Self> {
        let scenario: Self = serde_json::from_str(json)?;
        scenario.check()?;
        Ok(scenario)
    }

    /// Reject invalid values: negative times, empty blocks, probabilities outside 0 … 1.
    ///
    /// # Errors
    /// The first key with an invalid value.
    pub fn check(&self) -> Result<()> {
        let s = &self.stages;
        let p = &self.parameters;
        for (key, seconds) in [
            ("stages.started_s", s.started_s),
            ("stages.block_context_s", s.block_context_s),
            ("stages.ledger_state_s", s.ledger_state_s),
            ("stages.ledger_view_s", s.ledger_view_s),
            ("stages.leadership_s", s.leadership_s),
            ("stages.ticked_s", s.ticked_s),
            ("stages.snapshot_s", s.snapshot_s),
            ("stages.forged_s", s.forged_s),
            ("stages.announced_s", s.announced_s),
            ("stages.self_adopted_s", s.self_adopted_s),
            ("stages.request_s", s.request_s),
            ("stages.fetched_to_announced_s", s.fetched_to_announced_s),
            ("stages.adopted_s", s.adopted_s),
            ("parameters.header_service_s", p.header_service_s),
            ("parameters.body_service_s", p.body_service_s),
            ("parameters.decision_interval_s", p.decision_interval_s),
            ("parameters.slow_forging_s", p.slow_forging_s),
            ("parameters.slow_adoption_s", p.slow_adoption_s),
            ("parameters.straggler_s", p.straggler_s),
            ("parameters.forging_variation", p.forging_variation),
            ("parameters.header_variation", p.header_variation),
            ("parameters.body_variation", p.body_variation),
            ("parameters.request_variation", p.request_variation),
            ("parameters.announcement_variation", p.announcement_variation),
            ("parameters.adoption_variation", p.adoption_variation),
        ] {
            within(key, seconds, 0.0, 600.0)?;
        }
        for (key, fraction) in [
            ("parameters.server_share", p.server_share),
            ("parameters.fast_block_probability", p.fast_block_probability),
            ("parameters.fast_block_share", p.fast_block_share),
            ("parameters.slow_block_probability", p.slow_block_probability),
            ("parameters.straggler_probability", p.straggler_probability),
        ] {
            within(key, fraction, 0.0, 1.0)?;
        }
        within("parameters.fetch_factor", p.fetch_factor, 1.0, 100.0)?;
        within("block_bytes", self.block_bytes, 1.0, 1e9)?;
        within("block_bytes_variation", self.block_bytes_variation, 0.0, 1.0)?;
        let ascending = self.block_bytes_shape.windows(2).all(|pair| pair[0] <= pair[1]);
        if self.block_bytes_shape.len() == 1 || !ascending {
            return Err(SimulationError::impossible(
                "`block_bytes_shape` must hold at least two sizes, ascending",
                "each is a size over the mean size",
            ));
        }
        for size in &self.block_bytes_shape {
            within("block_bytes_shape", *size, 0.0, 1e6)?;
        }
        within("block_interval_s", self.block_interval_s, 0.01, 1e6)?;
        within("parameters.segment_bytes", p.segment_bytes, 100.0, 1e6)?;
        within("parameters.segment_bytes_in_region", p.segment_bytes_in_region, 100.0, 1e6)?;
        within("parameters.initial_window_segments", p.initial_window_segments, 1.0, 1e6)?;
        within("parameters.window_limit_segments", p.window_limit_segments, p.initial_window_segments, 1e9)?;
        within("parameters.window_memory_s", p.window_memory_s, 0.0, f64::INFINITY)?;
        within("parameters.bandwidth_bytes_per_s", p.bandwidth_bytes_per_s, 1.0, f64::INFINITY)?;
        within("parameters.fetch_concurrency", f64::from(p.fetch_concurrency), 1.0, 64.0)
    }
}

fn within(key: &str, value: f64, low: f64, high: f64) -> Result<()> {
    if value.is_nan() || value < low || value > high {
        return Err(SimulationError::impossible(
            format!("`{key}` is {value}, but must be between {low} and {high}"),
            "times are in seconds, sizes in bytes, probabilities between 0 and 1",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAGES: &str = r#"{"started_s":0.001,"block_context_s":0.0001,"ledger_state_s":0.0001,"ledger_view_s":0.0001,
        "leadership_s":0.0004,"ticked_s":0.02,"snapshot_s":0.04,"forged_s":0.001,"announced_s":0.001,
        "self_adopted_s":0.07,"request_s":0.001,"fetched_to_announced_s":0.001,"adopted_s":ADOPTED}"#;

    fn read(adopted: &str, more: &str) -> Result<Scenario> {
        let stages = STAGES.replace("ADOPTED", adopted);
        Scenario::from_json(&format!(
            r#"{{"seed":1,"cluster":{{"hosts":52,"topology":{{"kind":"torus-dense"}},"regions":[{{"name":"EU"}}],
            "rtt_s":[[0.001]]}},"stages":{stages},"block_bytes":3000,"block_interval_s":20{more}}}"#
        ))
    }

    #[test]
    fn a_scenario_needs_no_parameters() {
        assert_eq!(read("0.07", "").expect("valid").parameters, Parameters::default());
    }

    #[test]
    fn physically_impossible_values_are_refused_by_key() {
        assert!(read("-0.07", "").expect_err("negative").to_string().contains("`stages.adopted_s` is -0.07"));
        let more = r#","parameters":{"slow_block_probability":1.5}"#;
        let error = read("0.07", more).expect_err("no probability").to_string();
        assert!(error.contains("`parameters.slow_block_probability` is 1.5"), "{error}");
        let error = read("0.07", r#","parameters":{"colour":1}"#).expect_err("unknown").to_string();
        assert!(error.contains("unknown field `colour`"), "{error}");
        assert!(read("null", "").is_err());
    }
}
