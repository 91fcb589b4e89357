//! One HTTP load: made, started once, finished once.

use super::error::{HttpError, refused};
use super::order::LoadConfig;
use super::plan::{Plan, allow_connections};
use super::result::{Course, HttpResult};
use super::series::Series;
use super::share::Outcome;
use super::tally::{Common, Part, Whole};
use super::worker::{Descriptors, End, Shared, Worker};
use crate::clock::{NS_PER_S, WallClock, monotonic_ns};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Room for all threads to be there when the step begins.
const START_DELAY_NS: i64 = 2_000_000;

/// How far a load is. The counts hold warm-up and window together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HttpProgress {
    pub phase: &'static str,
    pub elapsed_s: f64,
    /// Warm-up and window, without the draining.
    pub planned_s: f64,
    pub started: u64,
    /// Of these, in the window.
    pub measured: u64,
    pub ok: u64,
    pub failed: u64,
    /// Measured requests that were, or wait already, longer than the limit of giving up, and failures of the server.
    pub slow: u64,
    pub faults: u64,
    /// Of the failed, those to which the server sent no response.
    pub unanswered: u64,
    pub in_flight: u64,
    pub queued: u64,
    /// Of the last whole second.
    pub ok_per_s: Option<u64>,
    pub failed_per_s: Option<u64>,
    pub p50_s: Option<f64>,
    pub p99_s: Option<f64>,
}

/// One HTTP load. Dropping it ends its threads.
pub struct HttpLoad {
    order: LoadConfig,
    plan: Mutex<Option<Plan>>,
    running: Mutex<Option<Running>>,
    state: Arc<RunState>,
}

#[derive(Debug, Default)]
struct RunState {
    begun: AtomicBool,
    /// Threads that still run.
    threads: AtomicUsize,
    /// Monotonic time of the step's begin; 0: not started.
    origin_ns: AtomicI64,
}

struct Running {
    plan: Arc<Plan>,
    shared: Arc<Shared>,
    started_ns: i64,
    threads: Vec<JoinHandle<Part>>,
}

impl HttpLoad {
    /// # Errors
    /// An unusable order; nothing is resolved or dialled yet.
    pub fn new(order: LoadConfig) -> Result<Self, HttpError> {
        let plan = Mutex::new(Some(Plan::new(&order)?));
        Ok(Self { order, plan, running: Mutex::default(), state: Arc::default() })
    }

    /// Resolves the host and begins the step.
    ///
    /// # Errors
    /// The host has no address, or this machine lacks threads or files. A server that does not respond is not an error
    /// here: its failures are counted.
    pub fn start(&self) -> Result<(), HttpError> {
        self.start_at(None)
    }

    /// The same with a begin that other generators have, too, in wall nanoseconds since 1970; None: now.
    ///
    /// # Errors
    /// As [`HttpLoad::start`], or the begin has passed.
    pub fn start_at(&self, begin_ns: Option<i64>) -> Result<(), HttpError> {
        if self.state.begun.swap(true, Relaxed) {
            return Err(HttpError::State { what: "start", state: "has been started already" });
        }
        let plan = lock(&self.plan).take();
        let mut plan = plan.ok_or(HttpError::State { what: "start", state: "has been started already" })?;
        plan.addresses = plan.proxy.as_ref().unwrap_or(&plan.target).resolve()?;
        allow_connections(plan.load.connections())?;
        let plan = Arc::new(plan);
        let common = Common {
            series: Mutex::new(if begin_ns.is_some() {
                Series::of_share(plan.threads)
            } else {
                Series::new(plan.threads)
            }),
            records_left: AtomicI64::new(plan.max_records.min(i64::MAX as u64) as i64),
        };
        let shared = Arc::new(Shared::new(&plan, Arc::new(common)));
        let descriptors: Result<Vec<_>, _> = (0..plan.threads).map(|_| Descriptors::new()).collect();
        let descriptors = descriptors.map_err(|error| refused("event queues", error))?;
        let clock = WallClock::anchor();
        let origin_ns = begin_ns.map_or(monotonic_ns() + START_DELAY_NS, |begin_ns| clock.to_monotonic_ns(begin_ns));
        if origin_ns < monotonic_ns() {
            return Err(HttpError::State { what: "start", state: "should have begun already" });
        }
        let started_ns = clock.now_ns() - monotonic_ns() + origin_ns;
        self.state.origin_ns.store(origin_ns, Release);
        let mut running = Running { plan, shared, started_ns, threads: Vec::new() };
        for (index, descriptors) in descriptors.into_iter().enumerate() {
            running.spawn(index, descriptors, origin_ns, &self.state)?;
        }
        *lock(&self.running) = Some(running);
        Ok(())
    }

    /// Whether requests are still sent or waited for.
    pub fn is_running(&self) -> bool {
        self.state.threads.load(Acquire) > 0
    }

    /// Ends the step early: nothing more starts, requests in flight are awaited up to the drain timeout.
    pub fn stop(&self) {
        if let Some(running) = &*lock(&self.running) {
            running.shared.end_at(self.elapsed_ns(), End::Stopped);
        }
    }

    fn elapsed_ns(&self) -> i64 {
        (monotonic_ns() - self.state.origin_ns.load(Acquire)).max(0)
    }

    pub fn progress(&self) -> HttpProgress {
        let planned_s = self.order.warm_up_s + self.order.duration_s;
        let running = lock(&self.running);
        let Some(running) = &*running else { return HttpProgress::idle(self.state.begun.load(Relaxed), planned_s) };
        running.progress(self.elapsed_ns(), planned_s, self.is_running())
    }

    /// Waits for the end and returns what was measured.
    ///
    /// # Errors
    /// The load was not started, or is finished already, or its counts do not add up.
    pub fn finish(&self) -> Result<HttpResult, HttpError> {
        let (running, course, whole) = self.gathered()?;
        let series = running.shared.common.series.lock().unwrap_or_else(PoisonError::into_inner);
        let generator = course.generator(&whole);
        HttpResult::new(&running.plan, &course, &series, vec![generator], whole)
    }

    /// The same of one of several generators, to be merged with what the others measured.
    ///
    /// # Errors
    /// As [`HttpLoad::finish`]; the sums are checked when they are merged.
    pub fn finish_share(&self) -> Result<Outcome, HttpError> {
        let (running, course, whole) = self.gathered()?;
        let series = running.shared.common.series.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Outcome::made(&course, &series, whole))
    }

    fn gathered(&self) -> Result<(Running, Course, Whole), HttpError> {
        let absent = if self.state.begun.load(Relaxed) { "has been finished already" } else { "has not been started" };
        let mut running = lock(&self.running).take().ok_or(HttpError::State { what: "finish", state: absent })?;
        let lost = HttpError::State { what: "finish", state: "has lost a thread" };
        let parts: Result<Vec<Part>, _> = running.threads.drain(..).map(JoinHandle::join).collect();
        let whole = Whole::merged(parts.map_err(|_| lost)?.into_iter().map(Whole::from));
        running.shared.common.series.lock().unwrap_or_else(PoisonError::into_inner).close();
        let course = Course {
            started_ns: running.started_ns,
            end_ns: running.shared.end_ns(),
            why: running.shared.why_ended(),
            threads: running.plan.threads,
        };
        Ok((running, course, whole))
    }
}

impl Drop for HttpLoad {
    fn drop(&mut self) {
        if let Some(running) = lock(&self.running).take() {
            running.shared.end_at(self.elapsed_ns(), End::Stopped);
            running.abort();
        }
    }
}

impl Running {
    fn spawn(
        &mut self,
        index: usize,
        descriptors: Descriptors,
        origin_ns: i64,
        state: &Arc<RunState>,
    ) -> Result<(), HttpError> {
        let (plan, shared, state) = (self.plan.clone(), self.shared.clone(), state.clone());
        state.threads.fetch_add(1, Relaxed);
        let count = Leaving(state);
        let builder = std::thread::Builder::new().name(format!("chainmark-http-{index}"));
        let thread = builder.spawn(move || {
            let _count = count;
            Worker::new(&plan, &shared, index, descriptors, origin_ns).run()
        });
        match thread {
            Ok(thread) => {
                self.threads.push(thread);
                Ok(())
            }
            Err(error) => {
                self.shared.abort.store(true, Relaxed);
                Err(refused("threads", error))
            }
        }
    }

    fn abort(self) {
        self.shared.abort.store(true, Relaxed);
        for thread in self.threads {
            // A panic of the thread has already been printed, and there is no receiver.
            let _ = thread.join();
        }
    }

    fn progress(&self, elapsed_ns: i64, planned_s: f64, is_running: bool) -> HttpProgress {
        let sum = |gauge: fn(&super::worker::SharedGauges) -> u64| self.shared.gauges.iter().map(gauge).sum();
        let series = self.shared.common.series.lock().unwrap_or_else(PoisonError::into_inner);
        let last = series.rows().last();
        let phase = match elapsed_ns {
            _ if !is_running => "done",
            now_ns if now_ns >= self.shared.end_ns() => "drain",
            now_ns if now_ns < self.plan.warm_up_ns => "warm-up",
            _ => "window",
        };
        HttpProgress {
            phase,
            elapsed_s: elapsed_ns as f64 / NS_PER_S as f64,
            planned_s,
            started: sum(|gauges| gauges.started.load(Relaxed)),
            measured: sum(|gauges| gauges.measured.load(Relaxed)),
            slow: self.shared.slow.load(Relaxed) + sum(|gauges| gauges.waiting.load(Relaxed)),
            faults: self.shared.failed.load(Relaxed),
            ok: sum(|gauges| gauges.ok.load(Relaxed)),
            failed: sum(|gauges| gauges.failed.load(Relaxed)),
            unanswered: sum(|gauges| gauges.unanswered.load(Relaxed)),
            in_flight: sum(|gauges| gauges.in_flight.load(Relaxed)),
            queued: sum(|gauges| gauges.queued.load(Relaxed)),
            ok_per_s: last.map(|row| row.ok),
            failed_per_s: last.map(|row| row.failed.iter().sum()),
            p50_s: last.and_then(|row| row.p50_s),
            p99_s: last.and_then(|row| row.p99_s),
        }
    }
}

impl HttpProgress {
    fn idle(begun: bool, planned_s: f64) -> Self {
        Self {
            phase: if begun { "done" } else { "ready" },
            elapsed_s: 0.0,
            planned_s,
            started: 0,
            measured: 0,
            slow: 0,
            faults: 0,
            ok: 0,
            failed: 0,
            unanswered: 0,
            in_flight: 0,
            queued: 0,
            ok_per_s: None,
            failed_per_s: None,
            p50_s: None,
            p99_s: None,
        }
    }
}

/// Counts a thread out, even one that panics.
struct Leaving(Arc<RunState>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.threads.fetch_sub(1, Release);
    }
}

/// The locks are only held to insert or remove something, so a poisoned one is consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
