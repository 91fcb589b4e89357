//! Several generators, one schedule, one result: what each of them measured, merged.

use super::classes::{Class, Kind};
use super::error::HttpError;
use super::order::LoadConfig;
use super::pace::{Pace, draw};
use super::plan::{Load, Plan};
use super::result::{Course, Generator, HttpResult};
use super::series::{Second, Series};
use super::tally::{Ended, PartTally, Whole};
use super::worker::End;
use crate::clock::NS_PER_S;
use serde::{Deserialize, Serialize};

/// What became of one of several generators, in their order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Made(Box<Made>),
    Lost(Lost),
}

/// What a generator measured; its seconds as [`Series::of_share`] keeps them.
#[derive(Debug, Serialize, Deserialize)]
pub struct Made {
    end_ns: i64,
    why: End,
    threads: usize,
    seconds: Vec<String>,
    whole: Whole,
}

/// A generator that ended before it reported its measurements, as others saw it last.
#[derive(Debug, Serialize, Deserialize)]
pub struct Lost {
    why: String,
    /// Nanoseconds of the step.
    at_ns: i64,
    /// Requests that it had started, and those of them in the window.
    started: u64,
    measured: u64,
}

impl Outcome {
    pub(super) fn made(course: &Course, series: &Series, whole: Whole) -> Self {
        let Course { end_ns, why, threads, .. } = *course;
        Self::Made(Box::new(Made { end_ns, why, threads, seconds: series.written().to_vec(), whole }))
    }

    /// # Errors
    /// It is neither the JSON of [`super::HttpLoad::finish_share`] nor a lost generator.
    pub fn from_json(text: &str) -> Result<Self, HttpError> {
        serde_json::from_str(text).map_err(|error| HttpError::Share { reason: error.to_string() })
    }
}

/// The result of all generators of an order, whose share is the whole.
///
/// The share of a lost one is counted by the schedule in an open loop. In a closed loop it is the number of requests
/// that the generator was last seen to have started, at least one per client. All of it has failed through the
/// generator's fault.
///
/// # Errors
/// The order is invalid, or the counts do not add up.
pub fn merge(order: &LoadConfig, begin_ns: i64, outcomes: Vec<Outcome>) -> Result<HttpResult, HttpError> {
    let plan = Plan::new(order)?;
    let count = outcomes.len();
    let mut course = Course { started_ns: begin_ns, end_ns: 0, why: End::Time, threads: 0 };
    let mut seconds: Vec<Second> = Vec::new();
    let (mut wholes, mut generators, mut lost) = (Vec::new(), Vec::new(), Vec::new());
    for (index, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            Outcome::Made(made) => {
                add_seconds(&mut seconds, &made.seconds)?;
                let Made { end_ns, why, threads, whole, .. } = *made;
                generators.push(Course { started_ns: begin_ns, end_ns, why, threads }.generator(&whole));
                course.end_ns = course.end_ns.max(end_ns);
                course.threads += threads;
                // Of several reasons the one that says most about the server.
                if why == End::GaveUp || course.why == End::Time {
                    course.why = why;
                }
                wholes.push(whole);
            }
            Outcome::Lost(generator) => {
                generators.push(Generator { threads: 0, cpu_s: 0.0, wall_s: 0.0, lost: generator.why.clone() });
                lost.push((index, generator));
            }
        }
    }
    if wholes.is_empty() {
        (course.end_ns, course.why) =
            (lost.iter().map(|(_, generator)| generator.at_ns).max().unwrap_or(0), End::Stopped);
    }
    for (index, generator) in lost {
        let end_ns = course.end_ns.min(plan.end_ns);
        wholes.push(Losing { plan: &plan, lost: &generator, index, count, end_ns }.counted(&mut seconds));
    }
    let mut series = Series::new(count);
    seconds.iter().for_each(|second| series.push(second));
    HttpResult::new(&plan, &course, &series, generators, Whole::merged(wholes))
}

fn add_seconds(sums: &mut Vec<Second>, written: &[String]) -> Result<(), HttpError> {
    for (number, text) in written.iter().enumerate() {
        let second = serde_json::from_str(text).map_err(|error| HttpError::Share { reason: error.to_string() })?;
        second_of(sums, number).add(&second);
    }
    Ok(())
}

fn second_of(seconds: &mut Vec<Second>, number: usize) -> &mut Second {
    if number >= seconds.len() {
        seconds.resize_with(number + 1, Second::default);
    }
    &mut seconds[number]
}

/// The part of a lost generator.
struct Losing<'a> {
    plan: &'a Plan,
    lost: &'a Lost,
    index: usize,
    count: usize,
    /// Of the step.
    end_ns: i64,
}

impl Losing<'_> {
    fn counted(&self, seconds: &mut Vec<Second>) -> Whole {
        let mut whole = Whole::default();
        whole.end_ns = self.lost.at_ns;
        whole.parts = vec![PartTally::default(); self.plan.mix.size()];
        let detail = format!("generator {} of {} was lost: {}", self.index + 1, self.count, self.lost.why);
        let class = whole.classes.number(Class::new(Kind::Generator, None, detail));
        for (number, phase, due_ns) in self.requests() {
            let request = draw(self.plan.drawing, self.plan.seed, number, &self.plan.mix) as u32;
            let part = self.plan.requests[request as usize].part;
            let end_ns = due_ns.max(self.lost.at_ns);
            let (first_byte_ns, status) = (None, None);
            let ended = Ended { request, part, phase, due_ns, start_ns: due_ns, end_ns, first_byte_ns, status };
            whole.lose(&ended, class, second_of(seconds, (due_ns.max(0) / NS_PER_S) as usize));
        }
        whole
    }

    /// Number, phase and due time of each of its requests.
    fn requests(&self) -> Box<dyn Iterator<Item = (u64, usize, i64)> + '_> {
        let (index, count) = (self.index as u64, self.count as u64);
        match self.plan.load {
            Load::Open { kind, rate_per_s, .. } => {
                let mut pace = Pace::new(self.plan.course.clone(), kind, rate_per_s, self.plan.seed, index, count);
                Box::new(std::iter::from_fn(move || {
                    let (number, due_ns) = (pace.number(), pace.due_ns());
                    pace.advance();
                    (due_ns < self.end_ns).then(|| (number, self.plan.phase(due_ns), due_ns))
                }))
            }
            Load::Closed { clients, .. } => {
                let clients = (clients / self.count + usize::from(self.index < clients % self.count)) as u64;
                let before = self.lost.started.saturating_sub(self.lost.measured);
                let all = before + self.lost.measured.max(clients);
                let at_ns = self.lost.at_ns.max(0);
                Box::new((0..all).map(move |place| (index + place * count, usize::from(place >= before), at_ns)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::ScheduleKind;
    use proptest::prelude::*;
    use serde_json::json;

    fn order(mode: &serde_json::Value, share: &serde_json::Value, threads: u32) -> LoadConfig {
        let order = json!({
            "url": "http://127.0.0.1:1", "requests": [{"method": "GET", "path": "/"}], "mode": mode, "duration_s": 0.4,
            "share": share, "threads": threads, "seed": 3,
        });
        LoadConfig::from_json(&order.to_string()).unwrap()
    }

    proptest! {
        #[test]
        fn generators_follow_one_schedule_and_divide_all_clients_whatever_their_threads(
            threads in prop::collection::vec(1u32..5, 1..6), clients in 6u32..90, poisson: bool,
        ) {
            let schedule = if poisson { "poisson" } else { "even" };
            let open = json!({"open": {"rate_per_s": 997.0, "schedule": schedule, "connections": 64}});
            let closed = json!({"closed": {"clients": clients}});
            let kind = ScheduleKind::from_name(schedule).unwrap();
            let (mut dues, mut slots, mut numbers) = (Vec::new(), 0, Vec::new());
            for (index, &of) in threads.iter().enumerate() {
                let share = json!({"index": index, "count": threads.len()});
                let plan = Plan::new(&order(&open, &share, of)).unwrap();
                for thread in 0..plan.threads {
                    let mut pace = Pace::new(None, kind, 997.0, 3, plan.first_number(thread), plan.stride());
                    while pace.due_ns() < plan.end_ns {
                        dues.push((pace.number(), pace.due_ns()));
                        pace.advance();
                    }
                }
                let plan = Plan::new(&order(&closed, &share, of)).unwrap();
                for thread in 0..plan.threads {
                    slots += plan.of_thread(plan.load.connections(), thread);
                    numbers.extend((0..20).map(|place| plan.first_number(thread) + place * plan.stride()));
                }
            }
            dues.sort_unstable();
            let mut alone = Pace::new(None, kind, 997.0, 3, 0, 1);
            for (number, (request, due_ns)) in dues.iter().enumerate() {
                prop_assert_eq!((*request, *due_ns), (number as u64, alone.due_ns()));
                alone.advance();
            }
            prop_assert!(alone.due_ns() >= 400_000_000);
            prop_assert_eq!(slots, clients as usize);
            let drawn = numbers.len();
            numbers.sort_unstable();
            numbers.dedup();
            prop_assert_eq!(numbers.len(), drawn);
        }
    }

    #[test]
    fn a_lost_generator_counts_its_whole_part_of_the_schedule_as_failed() {
        let open = json!({"open": {"rate_per_s": 1000.0, "connections": 8}});
        let lost = |at_ns| Outcome::Lost(Lost { why: "killed".into(), at_ns, started: 3, measured: 1 });
        let whole = order(&open, &json!({"index": 0, "count": 1}), 1);
        // Both are: up to the moment at which the last was.
        let result = merge(&whole, 5, vec![lost(100_000_000), lost(300_000_000)]).unwrap();
        assert_eq!((result.counts.due, result.counts.failed, result.ended), (300, 300, "stopped"));
        assert_eq!(
            result.generators.iter().map(|generator| generator.lost.as_str()).collect::<Vec<_>>(),
            ["killed", "killed"]
        );
        let details: Vec<_> = result.classes.iter().map(|class| (class.class, class.detail.as_str())).collect();
        let (one, two) = ("generator 1 of 2 was lost: killed", "generator 2 of 2 was lost: killed");
        assert_eq!(details, [("generator", one), ("generator", two)]);
        assert_eq!(result.series.failed, [300]);

        // In a closed loop no schedule states what was due: at least what its three clients had in flight.
        let whole = order(&json!({"closed": {"clients": 6}}), &json!({"index": 0, "count": 1}), 1);
        let result = merge(&whole, 5, vec![lost(1), lost(2)]).unwrap();
        assert_eq!((result.warm_up.failed, result.counts.failed), (4, 6));
    }
}
