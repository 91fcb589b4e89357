//! The open-loop sender: one thread drives all connections of a load.

mod connection;

use crate::clock::{NS_PER_S, WallClock, monotonic_ns, thread_cpu_ns};
use crate::cometbft::BroadcastMethod;
use crate::error::LoadError;
use crate::record::{ConnectionRecords, LoadResult};
use crate::schedule::{Schedule, ScheduleKind};
use crate::timer::Timer;
use crate::transactions::Transactions;
use crate::websocket::{Socket, check_url, dial};
use connection::{Connection, Outcome};
use futures_util::future::try_join_all;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::LocalSet;

const DIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// What to send, where and when.
#[derive(Debug, Clone)]
pub struct LoadConfig {
    /// One WebSocket URL per connection that this generator makes.
    pub targets: Vec<String>,
    pub share: Share,
    /// Transactions per second.
    pub rate_per_connection: u32,
    pub duration_ns: i64,
    pub transactions: Transactions,
    pub method: BroadcastMethod,
    pub schedule: ScheduleKind,
    pub seed: u64,
    /// Maximum time between sending a transaction and its response.
    pub answer_timeout_ns: i64,
    /// How long after the end of the schedule late transactions are still sent.
    pub send_grace_ns: i64,
}

/// Which connections of a load a generator makes, if several generators offer it together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    /// Number of the first one.
    pub first: u32,
    /// Connections of all generators; 0: those of this one.
    pub all: u32,
}

impl LoadConfig {
    /// The connections of the whole load.
    fn connections(&self) -> u32 {
        if self.share.all == 0 { u32::try_from(self.targets.len()).unwrap_or(u32::MAX) } else { self.share.all }
    }

    /// The number of one of this generator's connections in the whole load.
    fn number(&self, index: usize) -> u32 {
        self.share.first + index as u32
    }

    fn schedule(&self) -> Schedule {
        Schedule {
            kind: self.schedule,
            connections: self.connections(),
            rate_per_connection: self.rate_per_connection,
            duration_ns: self.duration_ns,
            seed: self.seed,
        }
    }

    fn check(&self) -> Result<(), LoadError> {
        self.schedule().check()?;
        let end = self.share.first as usize + self.targets.len();
        if self.targets.is_empty() || end > self.connections() as usize {
            return Err(LoadError::Argument {
                name: "the end of this generator's connections",
                value: end.to_string(),
                condition: "above their beginning, and at most the number of all connections",
            });
        }
        self.targets.iter().try_for_each(|url| check_url(url))?;
        for (name, value_ns) in [("answer_timeout_s", self.answer_timeout_ns), ("send_grace_s", self.send_grace_ns)] {
            if !(0..=86_400 * NS_PER_S).contains(&value_ns) {
                let value = (value_ns as f64 / NS_PER_S as f64).to_string();
                return Err(LoadError::Argument { name, value, condition: "between 0 and 86400 seconds" });
            }
        }
        self.transactions.check(self.connections() as usize, self.rate_per_connection)
    }
}

/// Schedule time 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// Nanoseconds after the last handshake.
    After(i64),
    /// Wall nanoseconds since 1970, the same for all generators of a load.
    At(i64),
}

/// How far a load is, in transactions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    pub offered: u64,
    pub due: u64,
    pub sent: u64,
    pub answered: u64,
    pub accepted: u64,
}

#[derive(Debug, Default)]
struct Counters {
    sent: AtomicU64,
    answered: AtomicU64,
    accepted: AtomicU64,
}

/// The owner's request to the thread of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Command {
    Run,
    /// Send nothing more; wait for responses from this monotonic time on.
    Stop(i64),
    /// End at once.
    Abort,
}

/// What all connections of a running load share.
struct Plan {
    config: LoadConfig,
    clock: WallClock,
    /// Wall time of schedule time 0.
    start_ns: i64,
    counters: Arc<Counters>,
    command: watch::Receiver<Command>,
}

/// One load: made, started once, finished once. Dropping it ends its thread.
pub struct TransactionLoad {
    config: LoadConfig,
    due_ns: Vec<Arc<Vec<i64>>>,
    counters: Arc<Counters>,
    command: watch::Sender<Command>,
    begun: AtomicBool,
    thread: Mutex<Option<JoinHandle<LoadResult>>>,
    /// Monotonic time of schedule time 0, once started.
    start_ns: OnceLock<i64>,
    running: Arc<AtomicBool>,
}

impl TransactionLoad {
    /// # Errors
    /// An unusable configuration; nothing is dialled yet.
    pub fn new(config: LoadConfig) -> Result<Self, LoadError> {
        config.check()?;
        let schedule = config.schedule();
        let due_of = |index| Arc::new(schedule.due_ns(config.number(index)));
        let due_ns = (0..config.targets.len()).map(due_of).collect();
        let (command, _) = watch::channel(Command::Run);
        Ok(Self {
            config,
            due_ns,
            command,
            counters: Arc::default(),
            begun: AtomicBool::new(false),
            thread: Mutex::default(),
            start_ns: OnceLock::new(),
            running: Arc::default(),
        })
    }

    /// Dials every target and starts the schedule. Returns the wall time in nanoseconds of schedule time 0.
    ///
    /// # Errors
    /// [`LoadError::Connect`] if a target cannot be dialled; no transaction has been sent then.
    pub fn start(&self, begin: Begin) -> Result<i64, LoadError> {
        if self.begun.swap(true, Relaxed) {
            return Err(LoadError::State { what: "start", object: "load", state: "has been started already" });
        }
        let (report, started) = mpsc::channel();
        let generator = Generator {
            config: self.config.clone(),
            due_ns: self.due_ns.clone(),
            counters: self.counters.clone(),
            command: self.command.subscribe(),
            begin,
        };
        let running = self.running.clone();
        running.store(true, Release);
        let builder = std::thread::Builder::new().name("chainmark-load".into());
        let thread = builder.spawn(move || {
            let result = generator.run(&report);
            running.store(false, Release);
            result
        });
        let thread = thread.map_err(|error| refused("threads", &error))?;
        let lost_thread = LoadError::State { what: "start", object: "load", state: "has lost its thread" };
        let (clock, start_ns) = started.recv().unwrap_or(Err(lost_thread))?;
        *lock(&self.thread) = Some(thread);
        self.start_ns.get_or_init(|| clock.to_monotonic_ns(start_ns));
        Ok(start_ns)
    }

    pub fn progress(&self) -> Progress {
        let now_ns = match *self.command.borrow() {
            Command::Stop(stopped_ns) => stopped_ns,
            _ => monotonic_ns(),
        };
        let elapsed_ns = self.start_ns.get().map_or(-1, |start_ns| now_ns - start_ns);
        let due = |due_ns: &Arc<Vec<i64>>| due_ns.partition_point(|&due_ns| due_ns <= elapsed_ns) as u64;
        Progress {
            offered: self.due_ns.iter().map(|due_ns| due_ns.len() as u64).sum(),
            due: self.due_ns.iter().map(due).sum(),
            sent: self.counters.sent.load(Relaxed),
            answered: self.counters.answered.load(Relaxed),
            accepted: self.counters.accepted.load(Relaxed),
        }
    }

    /// Whether the load still sends or waits for responses.
    pub fn is_running(&self) -> bool {
        self.running.load(Acquire)
    }

    /// Ends the schedule now. Unsent transactions stay unsent; responses are still awaited.
    pub fn stop(&self) {
        self.command.send_if_modified(|command| {
            let modified = *command == Command::Run;
            if modified {
                *command = Command::Stop(monotonic_ns());
            }
            modified
        });
    }

    /// Waits for the end of the load and returns its records.
    ///
    /// # Errors
    /// The load was not started, or is finished already.
    pub fn finish(&self) -> Result<LoadResult, LoadError> {
        let state = |state| LoadError::State { what: "finish", object: "load", state };
        let absent = if self.start_ns.get().is_some() { "has been finished already" } else { "has not been started" };
        let thread = lock(&self.thread).take().ok_or_else(|| state(absent))?;
        thread.join().map_err(|_| state("has lost its thread"))
    }
}

impl Drop for TransactionLoad {
    fn drop(&mut self) {
        self.command.send_replace(Command::Abort);
        if let Some(thread) = lock(&self.thread).take() {
            // A panic of the thread has already been printed, and there is no receiver.
            let _ = thread.join();
        }
    }
}

/// The lock is only held to insert or remove a handle, so a poisoned one is consistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refused(what: &'static str, error: &std::io::Error) -> LoadError {
    LoadError::OperatingSystem { what, reason: error.to_string() }
}

type Started = Result<(WallClock, i64), LoadError>;

/// What moves into the load's thread.
struct Generator {
    config: LoadConfig,
    due_ns: Vec<Arc<Vec<i64>>>,
    counters: Arc<Counters>,
    command: watch::Receiver<Command>,
    begin: Begin,
}

impl Generator {
    fn run(self, started: &mpsc::Sender<Started>) -> LoadResult {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
        let result = match runtime {
            Ok(runtime) => {
                let result = runtime.block_on(LocalSet::new().run_until(self.drive(started)));
                // A name that is still being resolved must not delay the end.
                runtime.shutdown_background();
                result
            }
            Err(error) => Err(refused("event queue", &error)),
        };
        // A closed channel means that the owner is gone: there is no receiver for reports.
        result.unwrap_or_else(|error| {
            let _ = started.send(Err(error));
            LoadResult::default()
        })
    }

    async fn drive(self, started: &mpsc::Sender<Started>) -> Result<LoadResult, LoadError> {
        let sockets = try_join_all(self.config.targets.iter().map(|url| dial(url, DIAL_TIMEOUT))).await?;
        let timers: std::io::Result<Vec<Timer>> = sockets.iter().map(|_| Timer::new()).collect();
        let timers = timers.map_err(|error| refused("timers", &error))?;
        // Gigabytes of columns take a while, which must not make the first transactions late.
        let records = self.due_ns.into_iter().map(ConnectionRecords::new).collect();
        let clock = WallClock::anchor();
        let start_ns = match self.begin {
            Begin::After(delay_ns) => clock.now_ns() + delay_ns.max(0),
            Begin::At(wall_ns) => wall_ns,
        };
        let (config, counters, command) = (self.config, self.counters, self.command);
        let plan = Rc::new(Plan { config, clock, start_ns, counters, command });
        let cpu_before_ns = thread_cpu_ns();
        let _ = started.send(Ok((clock, start_ns)));
        let outcomes = drive_connections(&plan, sockets, timers, records).await;
        let cpu_ns = thread_cpu_ns() - cpu_before_ns;
        let wall_ns = (clock.now_ns() - start_ns).max(0);
        Ok(merge(&plan, outcomes, cpu_ns, wall_ns))
    }
}

/// Each connection is a task, so that a blocked one leaves the others alone.
async fn drive_connections(
    plan: &Rc<Plan>,
    sockets: Vec<Socket>,
    timers: Vec<Timer>,
    records: Vec<ConnectionRecords>,
) -> Vec<Outcome> {
    let parts = sockets.into_iter().zip(timers).zip(records).enumerate();
    let tasks: Vec<_> = parts
        .map(|(index, ((socket, timer), records))| {
            let connection = Connection::new(plan.clone(), index, timer, records);
            tokio::task::spawn_local(connection.run(socket))
        })
        .collect();
    let mut outcomes = Vec::with_capacity(tasks.len());
    for task in tasks {
        outcomes.push(task.await.expect("a connection's task neither panics nor is cancelled"));
    }
    outcomes
}

fn merge(plan: &Plan, outcomes: Vec<Outcome>, cpu_ns: i64, wall_ns: i64) -> LoadResult {
    let seconds = |time_ns: i64| time_ns as f64 / NS_PER_S as f64;
    let mut result = LoadResult { cpu_s: seconds(cpu_ns), wall_s: seconds(wall_ns), ..LoadResult::default() };
    for (index, outcome) in outcomes.into_iter().enumerate() {
        result.records.append(
            plan.config.number(index),
            plan.start_ns,
            plan.config.transactions.size_bytes(),
            outcome.records,
        );
        result.reconnects += outcome.reconnects;
        result.late_answers += outcome.late_answers;
        result.unmatched_answers += outcome.unmatched_answers;
        for (message, count) in outcome.messages.into_counts() {
            *result.errors.entry(message).or_default() += count;
        }
    }
    result
}
