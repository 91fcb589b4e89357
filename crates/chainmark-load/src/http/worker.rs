//! One thread of a load: an event loop over its share of the connections.

use super::carrier::Carrier;
use super::classes::{Class, Kind};
use super::connection::{Answered, Outcome};
use super::failure::Failure;
use super::io::Io;
use super::judge::{Judge, Received};
use super::pace::{Pace, Thinking, draw};
use super::plan::{Load, Plan};
use super::tally::{Common, Ended, Gauges, Part, Tally};
use crate::clock::{NS_PER_S, monotonic_ns};
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How often time-outs, resting connections and orders from outside are looked at.
const TICK_NS: i64 = 10_000_000;
/// Interval at which requests in flight are checked for a timeout.
const PATIENCE_TICKS: u32 = 10;
const FIRST_BACK_OFF_NS: i64 = 10_000_000;
const LONGEST_BACK_OFF_NS: i64 = NS_PER_S;
/// The extra delay on a busy machine, beyond the round trip, until the end of an idle connection is seen.
const IDLE_CLOSE_GRACE_NS: i64 = 1_000_000;
/// A wait for events that took so long was a sleep.
const ASLEEP_NS: i64 = 50_000;
const EVENTS: usize = 256;
const TIMER: u64 = u64::MAX;

/// Why a load ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub(super) enum End {
    Time,
    GaveUp,
    Stopped,
}

/// What the threads of a load share.
#[derive(Debug)]
pub(super) struct Shared {
    pub common: Arc<Common>,
    /// No request starts or is due from this time of the step on.
    end_ns: AtomicI64,
    end: AtomicU8,
    pub abort: AtomicBool,
    pub slow: AtomicU64,
    pub failed: AtomicU64,
    pub gauges: Vec<SharedGauges>,
}

/// A thread's published state while it runs.
#[derive(Debug, Default)]
pub(super) struct SharedGauges {
    pub started: AtomicU64,
    /// Of these, in the window.
    pub measured: AtomicU64,
    pub ok: AtomicU64,
    pub failed: AtomicU64,
    pub in_flight: AtomicU64,
    pub queued: AtomicU64,
    /// Failed requests to which the server sent no response.
    pub unanswered: AtomicU64,
    /// Measured requests that wait already longer than the limit of giving up.
    pub waiting: AtomicU64,
}

impl Shared {
    pub fn new(plan: &Plan, common: Arc<Common>) -> Self {
        Self {
            common,
            end_ns: AtomicI64::new(plan.end_ns),
            end: AtomicU8::new(End::Time as u8),
            abort: AtomicBool::new(false),
            slow: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            gauges: (0..plan.threads).map(|_| SharedGauges::default()).collect(),
        }
    }

    pub fn end_ns(&self) -> i64 {
        self.end_ns.load(Relaxed)
    }

    /// Ends the load at this time of the step, unless it is over by then.
    pub fn end_at(&self, now_ns: i64, why: End) {
        if self.end_ns.fetch_min(now_ns, Relaxed) > now_ns {
            let _ = self.end.compare_exchange(End::Time as u8, why as u8, Relaxed, Relaxed);
        }
    }

    pub fn why_ended(&self) -> End {
        match self.end.load(Relaxed) {
            end if end == End::GaveUp as u8 => End::GaveUp,
            end if end == End::Stopped as u8 => End::Stopped,
            _ => End::Time,
        }
    }
}

/// A request in flight.
#[derive(Debug, Clone, Copy, Default)]
struct Task {
    /// Its place in the order.
    request: u32,
    /// In nanoseconds of the step.
    due_ns: i64,
    start_ns: i64,
    /// 0 warm-up, 1 window.
    phase: usize,
    /// It was sent a second time.
    repeated: bool,
}

/// One that sends a request after the other.
#[derive(Debug, Clone, Copy, Default)]
struct Client {
    task: Task,
    is_busy: bool,
    /// How long to wait after the next failure, 0 after a success; and until when it waits.
    back_off_ns: i64,
    resume_ns: i64,
}

/// A thread's part of the load.
pub(super) struct Worker<'p> {
    plan: &'p Plan,
    shared: &'p Shared,
    index: usize,
    /// Monotonic time of the step's begin.
    origin_ns: i64,
    io: Io<'p>,
    timer: OwnedFd,
    /// What the timer is set to.
    armed_ns: i64,
    carrier: Carrier,
    clients: Vec<Client>,
    /// Slots that may carry a request; the last is the one used last, which spares opening others.
    free: Vec<u32>,
    /// Since when there has been a free one, without a break.
    free_since_ns: i64,
    /// Slots that wait for their back-off to end.
    resting: Vec<u32>,
    /// Slots below this are active; others are idle until the course of the load activates them.
    active: usize,
    parked: Vec<u32>,
    in_flight: usize,
    /// Requests of a closed loop so far.
    started: u64,
    pace: Option<OpenPace>,
    /// How long clients think; None: not at all. And until when each does.
    thinking: Option<Thinking>,
    thinkers: BinaryHeap<Reverse<(i64, u32)>>,
    judge: Judge,
    tally: Tally,
    ticks: u32,
    unanswered: u64,
    /// When this thread last looked at its connections, and when what it saw then happened at the earliest.
    looked_ns: i64,
    seen_since_ns: i64,
}

/// The schedule of an open loop at two positions. Requests between them are due and wait for a connection.
struct OpenPace {
    next: Pace,
    due: Pace,
    queued: u64,
}

/// The descriptors of a thread, opened before the load starts so that a shortage is reported.
pub(super) struct Descriptors {
    epoll: OwnedFd,
    timer: OwnedFd,
}

impl Descriptors {
    pub fn new() -> Result<Self, Errno> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN | EventFlags::ET)?;
        Ok(Self { epoll, timer })
    }
}

impl<'p> Worker<'p> {
    /// Of the calling thread.
    pub fn new(plan: &'p Plan, shared: &'p Shared, index: usize, descriptors: Descriptors, origin_ns: i64) -> Self {
        let slots = plan.of_thread(plan.load.connections(), index);
        let active = if matches!(plan.load, Load::Closed { .. }) { plan.clients_at(0, index) } else { slots };
        let pace = match plan.load {
            Load::Closed { .. } => None,
            Load::Open { kind, rate_per_s, .. } => {
                let (course, first) = (plan.course.clone(), plan.first_number(index));
                let pace = Pace::new(course, kind, rate_per_s, plan.seed, first, plan.stride());
                Some(OpenPace { next: pace.clone(), due: pace, queued: 0 })
            }
        };
        let thinking = match plan.load {
            Load::Closed { think_ns, .. } if think_ns > 0.0 => {
                Some(Thinking::new(think_ns, plan.seed, plan.first_number(index)))
            }
            _ => None,
        };
        let mut worker = Self {
            plan,
            shared,
            index,
            origin_ns,
            io: Io::new(plan, descriptors.epoll),
            timer: descriptors.timer,
            armed_ns: i64::MAX,
            carrier: Carrier::new(plan, slots),
            clients: vec![Client::default(); slots],
            free: (0..active as u32).rev().collect(),
            parked: (active as u32..slots as u32).collect(),
            active,
            free_since_ns: 0,
            resting: Vec::new(),
            in_flight: 0,
            started: 0,
            pace,
            thinking,
            thinkers: BinaryHeap::new(),
            judge: Judge::new(plan.error_pointers.clone()),
            tally: Tally::new(plan, shared.common.clone()),
            ticks: 0,
            unanswered: 0,
            looked_ns: 0,
            seen_since_ns: 0,
        };
        if worker.thinking.is_some() {
            // Clients start one after the other, as they will continue.
            std::mem::take(&mut worker.free).into_iter().for_each(|slot| worker.think(slot, 0));
        }
        worker
    }

    /// The client sends its next request after its think time.
    fn think(&mut self, slot: u32, now_ns: i64) {
        if let Some(thinking) = &mut self.thinking {
            self.thinkers.push(Reverse((now_ns + thinking.next_ns(), slot)));
        }
    }

    /// Starts the requests of those that have thought.
    fn start_thinkers(&mut self, mut now_ns: i64) {
        while let Some(&Reverse((due_ns, slot))) = self.thinkers.peek()
            && due_ns <= now_ns
            && now_ns < self.shared.end_ns()
        {
            self.thinkers.pop();
            if self.park(slot) {
                continue;
            }
            self.start(slot, due_ns, now_ns, None);
            now_ns = self.now_ns();
        }
    }

    /// Whether the client must not send now; it becomes idle then.
    fn park(&mut self, slot: u32) -> bool {
        let is_active = (slot as usize) < self.active;
        if !is_active {
            self.parked.push(slot);
        }
        !is_active
    }

    /// Activates as many clients as the course of the load defines.
    fn follow_course(&mut self, now_ns: i64) {
        if self.pace.is_some() || self.plan.course.is_none() {
            return;
        }
        self.active = self.plan.clients_at(now_ns, self.index);
        let active = self.active;
        let (back, parked) = std::mem::take(&mut self.parked).into_iter().partition(|&slot| (slot as usize) < active);
        self.parked = parked;
        let back: Vec<u32> = back;
        back.into_iter().for_each(|slot| self.free_later(slot, now_ns));
    }

    fn now_ns(&self) -> i64 {
        monotonic_ns() - self.origin_ns
    }

    /// Runs to the end of the load.
    pub fn run(mut self) -> Part {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        let mut next_tick_ns = TICK_NS;
        if let Ok(before_ns) = u64::try_from(-self.now_ns()) {
            std::thread::sleep(Duration::from_nanos(before_ns));
        }
        loop {
            let now_ns = self.now_ns();
            if now_ns >= next_tick_ns {
                self.tally.woken(self.plan.phase(now_ns), now_ns - next_tick_ns);
                self.tick(now_ns);
                next_tick_ns = now_ns + TICK_NS;
            }
            self.start_thinkers(now_ns);
            self.start_free(now_ns);
            self.settle_ended();
            if self.is_over(now_ns) {
                return self.finish();
            }
            self.wait(&mut events, next_tick_ns);
            for event in &events {
                let token = event.data.u64();
                if token != TIMER {
                    self.event(token, event.flags);
                }
            }
        }
    }

    /// Waits for events, the next tick, or the next due time if a connection is free for it.
    fn wait(&mut self, events: &mut Vec<Event>, next_tick_ns: i64) {
        let now_ns = self.now_ns();
        if let Some(due_ns) = self.next_due_ns()
            && due_ns < next_tick_ns
            && due_ns != self.armed_ns
        {
            self.arm(due_ns);
        }
        // Whole milliseconds are all that older kernels understand here; what must be exact has the timer.
        let timeout = Timespec { tv_sec: 0, tv_nsec: (next_tick_ns - now_ns).clamp(0, TICK_NS) };
        events.clear();
        match epoll::wait(&self.io.epoll, spare_capacity(events), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => unreachable!("waiting on an open queue failed: {error}"),
        }
        let looked_ns = self.now_ns();
        // What ends a sleep happened just now; what was there at once may have waited since the last look.
        self.seen_since_ns = if looked_ns - now_ns > ASLEEP_NS { looked_ns } else { self.looked_ns };
        (self.looked_ns, self.io.looked_ns) = (looked_ns, looked_ns);
    }

    fn next_due_ns(&self) -> Option<i64> {
        let due_ns = match &self.pace {
            Some(pace) if !self.free.is_empty() => pace.next.due_ns(),
            Some(_) => return None,
            None => self.thinkers.peek()?.0.0,
        };
        (due_ns < self.shared.end_ns()).then_some(due_ns)
    }

    fn arm(&mut self, due_ns: i64) {
        // By duration, so that a shifted clock of this process does not matter; 0 would disarm the timer.
        let duration_ns = (due_ns - self.now_ns()).max(1);
        let duration = Timespec { tv_sec: duration_ns / NS_PER_S, tv_nsec: duration_ns % NS_PER_S };
        let once = Itimerspec { it_interval: Timespec::default(), it_value: duration };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once).expect("the duration is a valid one");
        self.armed_ns = due_ns;
    }

    fn is_over(&self, now_ns: i64) -> bool {
        let end_ns = self.shared.end_ns();
        if self.shared.abort.load(Relaxed) || now_ns >= end_ns.saturating_add(self.plan.drain_ns) {
            return true;
        }
        now_ns >= end_ns && self.in_flight == 0 && !self.has_queue(end_ns)
    }

    /// Whether requests that were due before the end still wait and may be sent.
    fn has_queue(&self, end_ns: i64) -> bool {
        self.shared.why_ended() == End::Time && self.pace.as_ref().is_some_and(|pace| pace.next.due_ns() < end_ns)
    }

    /// Starts what may be started on free connections.
    fn start_free(&mut self, mut now_ns: i64) {
        while let Some(&slot) = self.free.last() {
            let Some(due_ns) = self.due_now(now_ns) else { return };
            self.free.pop();
            let lag_since_ns = self.free_since_ns;
            self.start(slot, due_ns, now_ns, Some(lag_since_ns));
            now_ns = self.now_ns();
        }
    }

    /// The due time of the next request if it may start now; the present in a closed loop.
    fn due_now(&self, now_ns: i64) -> Option<i64> {
        let end_ns = self.shared.end_ns();
        match &self.pace {
            None => (now_ns < end_ns).then_some(now_ns),
            Some(pace) => {
                let due_ns = pace.next.due_ns();
                let open = now_ns < end_ns || self.shared.why_ended() == End::Time;
                (due_ns <= now_ns && due_ns < end_ns && open).then_some(due_ns)
            }
        }
    }

    /// Starts the next request on this connection.
    ///
    /// `lag_since_ns`: a connection has been free since then, without a break; what was due later is late by the
    /// generator's fault alone. None: the connection was waited for.
    fn start(&mut self, slot: u32, due_ns: i64, now_ns: i64, lag_since_ns: Option<i64>) {
        let number = match &mut self.pace {
            None => {
                self.started += 1;
                self.plan.first_number(self.index) + (self.started - 1) * self.plan.stride()
            }
            Some(pace) => {
                let number = pace.next.number();
                pace.next.advance();
                number
            }
        };
        let request = draw(self.plan.drawing, self.plan.seed, number, &self.plan.mix) as u32;
        let phase = self.plan.phase(due_ns);
        if now_ns >= self.tally.second_end_ns {
            self.hand_in(now_ns, false);
        }
        self.tally.started(phase, self.plan.requests[request as usize].part);
        if self.pace.is_some() && lag_since_ns.is_some_and(|since_ns| due_ns >= since_ns) {
            self.tally.lag(phase, now_ns - due_ns);
        }
        self.in_flight += 1;
        let task = Task { request, due_ns, start_ns: now_ns, phase, repeated: false };
        self.begin(slot, task);
    }

    fn begin(&mut self, slot: u32, task: Task) {
        let client = &mut self.clients[slot as usize];
        (client.task, client.is_busy) = (task, true);
        let outcome = self.carrier.begin(slot, &mut self.io, task.request);
        self.settle(slot, outcome);
    }

    fn event(&mut self, token: u64, flags: EventFlags) {
        match &mut self.carrier {
            Carrier::Http1(connections) => {
                let slot = token as u32;
                let connection = &mut connections[slot as usize];
                if connection.generation == (token >> 32) as u32 {
                    let outcome = connection.event(slot, &mut self.io, flags);
                    self.settle(slot, outcome);
                }
            }
            Carrier::Http2(sessions) => {
                sessions.event(token, &mut self.io, flags);
                self.settle_ended();
            }
        }
    }

    /// Counts the outcomes of requests other than the one of the event.
    fn settle_ended(&mut self) {
        while let Some((slot, outcome)) = self.carrier.next_ended(&mut self.io) {
            self.settle(slot, outcome);
        }
    }

    fn settle(&mut self, slot: u32, outcome: Outcome) {
        match outcome {
            None => {}
            Some(Ok(answered)) => self.answered(slot, &answered),
            Some(Err(failure)) => self.failed(slot, failure),
        }
    }

    fn answered(&mut self, slot: u32, answered: &Answered) {
        let end_ns = self.now_ns();
        if end_ns >= self.tally.second_end_ns {
            self.hand_in(end_ns, false);
        }
        self.in_flight -= 1;
        let client = &mut self.clients[slot as usize];
        (client.is_busy, client.back_off_ns) = (false, 0);
        let first_byte_ns = self.carrier.first_byte_ns(slot);
        let ended = ended(self.plan, &client.task, end_ns).with_answer(first_byte_ns, Some(answered.status));
        let expectation = &self.plan.requests[ended.request as usize].expectation;
        let body = self.carrier.body(slot, &answered.body, &self.io.buffers);
        let location = self.carrier.location(slot);
        let received = Received { status: answered.status, coded: answered.coded, location, body };
        match self.judge.judge(ended.request, expectation, &received, &mut self.tally.classes) {
            None => self.tally.ok(&ended),
            Some(class) => self.count_failure(&ended, class),
        }
        self.count_slow(&ended);
        self.carrier.answered(slot, answered.reusable);
        self.reuse(slot);
    }

    /// The connection is free: the request that has waited longest gets it.
    fn reuse(&mut self, slot: u32) {
        if self.park(slot) {
            return;
        }
        let now_ns = self.now_ns();
        if self.thinking.is_some() {
            return self.think(slot, now_ns);
        }
        match self.due_now(now_ns) {
            Some(due_ns) if self.free.is_empty() => self.start(slot, due_ns, now_ns, None),
            _ => {
                if self.free.is_empty() {
                    self.free_since_ns = now_ns;
                }
                self.free.push(slot);
                self.start_free(now_ns);
            }
        }
    }

    fn failed(&mut self, slot: u32, failure: Failure) {
        let now_ns = self.now_ns();
        let kind = if self.was_closed_idle(slot, failure.kind) { Kind::IdleClose } else { failure.kind };
        if kind == Kind::IdleClose {
            self.io.counts.idle_closed += 1;
        }
        if (kind == Kind::IdleClose || failure.is_unprocessed) && self.repeat(slot, failure.is_unprocessed) {
            return;
        }
        self.fail(slot, kind, &failure.detail, now_ns);
        let never_answered = self.carrier.answers(slot) == 0 && kind != Kind::Timeout;
        self.carrier.close(slot);
        if never_answered {
            let client = &mut self.clients[slot as usize];
            let back_off_ns = (client.back_off_ns * 2).clamp(FIRST_BACK_OFF_NS, LONGEST_BACK_OFF_NS);
            (client.back_off_ns, client.resume_ns) = (back_off_ns, now_ns + back_off_ns);
            self.resting.push(slot);
        } else {
            self.free_later(slot, now_ns);
        }
    }

    /// Whether the server ended an idle connection before it read the request: then it ends within a round trip of the
    /// sending, as far as this thread can tell, or the request is never acknowledged. Another end may have been caused
    /// by the request.
    ///
    /// Source: RFC 9112, 9.3.1.
    fn was_closed_idle(&self, slot: u32, kind: Kind) -> bool {
        let round_trip_ns = if self.io.round_trip_ns == i64::MAX { 0 } else { self.io.round_trip_ns };
        let took_ns = self.seen_since_ns - self.clients[slot as usize].task.start_ns;
        let is_prompt = took_ns <= round_trip_ns.saturating_add(IDLE_CLOSE_GRACE_NS);
        let is_unread = match kind {
            Kind::Reset => is_prompt,
            Kind::Closed => is_prompt || self.carrier.is_unacknowledged(slot),
            _ => false,
        };
        is_unread && self.carrier.is_reused_and_silent(slot)
    }

    /// Sends a request again, on a new connection; its time continues. False: that is not allowed.
    ///
    /// `is_unprocessed`: the server states that it did not process it, so that it may be repeated for any method.
    ///
    /// Source: RFC 9113, 8.7.
    fn repeat(&mut self, slot: u32, is_unprocessed: bool) -> bool {
        let task = self.clients[slot as usize].task;
        let is_repeatable = is_unprocessed || self.plan.requests[task.request as usize].repeatable;
        if task.repeated || !is_repeatable {
            return false;
        }
        self.io.counts.repeated += 1;
        self.carrier.close(slot);
        self.begin(slot, Task { repeated: true, ..task });
        true
    }

    /// Without starting anything at once: a failure may come while others are being started.
    fn free_later(&mut self, slot: u32, now_ns: i64) {
        if self.park(slot) {
            return;
        }
        if self.thinking.is_some() {
            return self.think(slot, now_ns);
        }
        if self.free.is_empty() {
            self.free_since_ns = now_ns;
        }
        self.free.push(slot);
    }

    /// Counts a request as failed.
    fn fail(&mut self, slot: u32, kind: Kind, detail: &str, now_ns: i64) {
        if now_ns >= self.tally.second_end_ns {
            self.hand_in(now_ns, false);
        }
        self.in_flight -= 1;
        let client = &mut self.clients[slot as usize];
        client.is_busy = false;
        let ended = ended(self.plan, &client.task, now_ns).with_answer(self.carrier.first_byte_ns(slot), None);
        let class = self.tally.classes.number(Class::new(kind, None, detail.to_owned()));
        self.count_failure(&ended, class);
        self.count_slow(&ended);
    }

    fn count_failure(&mut self, ended: &Ended, class: u32) {
        self.tally.failed(ended, class);
        let kind = self.tally.classes.kind(class);
        self.unanswered += u64::from(kind.is_unanswered());
        // If no request reached a server, it is not hopeless.
        if ended.phase == 1 && kind.is_of_server() {
            self.shared.failed.fetch_add(1, Relaxed);
        }
    }

    fn count_slow(&mut self, ended: &Ended) {
        if let Some(give_up) = &self.plan.give_up
            && ended.phase == 1
            && ended.end_ns - ended.due_ns > give_up.slow_ns
        {
            self.shared.slow.fetch_add(1, Relaxed);
        }
    }

    fn tick(&mut self, now_ns: i64) {
        self.time_out(now_ns);
        self.follow_course(now_ns);
        let clients = &self.clients;
        let (over, resting) = self.resting.iter().partition(|&&slot| clients[slot as usize].resume_ns <= now_ns);
        self.resting = resting;
        let over: Vec<u32> = over;
        over.into_iter().for_each(|slot| self.free_later(slot, now_ns));
        self.count_queue(now_ns);
        if now_ns >= self.tally.second_end_ns {
            self.hand_in(now_ns, false);
        }
        self.show();
        self.ticks = self.ticks.wrapping_add(1);
        if self.ticks.is_multiple_of(PATIENCE_TICKS) {
            self.count_waiting(now_ns);
        }
        self.consider_giving_up(now_ns);
    }

    fn time_out(&mut self, now_ns: i64) {
        let latest_start_ns = now_ns - self.plan.timeout_ns;
        for slot in 0..self.clients.len() {
            let client = &self.clients[slot];
            if client.is_busy && client.task.start_ns <= latest_start_ns {
                let slot = slot as u32;
                self.failed(slot, Failure::new(Kind::Timeout, self.carrier.waited_for(slot)));
            }
        }
    }

    fn count_queue(&mut self, now_ns: i64) {
        let end_ns = self.shared.end_ns();
        if let Some(pace) = &mut self.pace {
            pace.due.skip_until((now_ns + 1).min(end_ns));
            // The numbers of a thread are one stride apart.
            let ahead = pace.due.number().saturating_sub(pace.next.number());
            pace.queued = ahead / self.plan.stride();
        }
    }

    fn count_waiting(&mut self, now_ns: i64) {
        let Some(give_up) = &self.plan.give_up else { return };
        let limit_ns = now_ns - give_up.slow_ns;
        let is_waiting = |client: &&Client| client.is_busy && client.task.phase == 1 && client.task.due_ns < limit_ns;
        let under_way = self.clients.iter().filter(is_waiting);
        let mut waiting = under_way.count() as u64;
        if let Some(pace) = &self.pace {
            let mut next = pace.next.clone();
            while next.due_ns() < limit_ns.min(self.shared.end_ns()) && waiting < give_up.slow {
                waiting += u64::from(self.plan.phase(next.due_ns()) == 1);
                next.advance();
            }
        }
        self.shared.gauges[self.index].waiting.store(waiting, Relaxed);
    }

    fn consider_giving_up(&self, now_ns: i64) {
        let Some(give_up) = &self.plan.give_up else { return };
        let waiting: u64 = self.shared.gauges.iter().map(|gauges| gauges.waiting.load(Relaxed)).sum();
        let slow = self.shared.slow.load(Relaxed) + waiting;
        if slow >= give_up.slow || self.shared.failed.load(Relaxed) >= give_up.failed {
            self.shared.end_at(now_ns, End::GaveUp);
        }
    }

    fn hand_in(&mut self, now_ns: i64, with_begun: bool) {
        let queued = self.pace.as_ref().map_or(0, |pace| pace.queued);
        let gauges = Gauges { in_flight: self.in_flight as u64, queued, bytes_in: self.io.counts.bytes_in };
        self.tally.hand_in(now_ns, gauges, with_begun);
    }

    fn show(&self) {
        let gauges = &self.shared.gauges[self.index];
        let [warm_up, window] = &self.tally.request_counts;
        gauges.started.store(warm_up.sent + window.sent, Relaxed);
        gauges.measured.store(window.sent, Relaxed);
        gauges.ok.store(warm_up.ok + window.ok, Relaxed);
        gauges.failed.store(warm_up.failed + window.failed, Relaxed);
        gauges.in_flight.store(self.in_flight as u64, Relaxed);
        gauges.unanswered.store(self.unanswered, Relaxed);
        gauges.queued.store(self.pace.as_ref().map_or(0, |pace| pace.queued), Relaxed);
    }

    /// Draining has ended: requests without a response have failed, unsent ones stay unsent.
    fn finish(mut self) -> Part {
        let now_ns = self.now_ns();
        for slot in 0..self.clients.len() as u32 {
            if self.clients[slot as usize].is_busy {
                self.fail(slot, Kind::Timeout, "no response when draining ended", now_ns);
                self.carrier.close(slot);
            }
        }
        let end_ns = self.shared.end_ns();
        if let Some(pace) = &mut self.pace {
            while pace.next.due_ns() < end_ns {
                let (due_ns, number) = (pace.next.due_ns(), pace.next.number());
                let request = draw(self.plan.drawing, self.plan.seed, number, &self.plan.mix) as u32;
                let part = self.plan.requests[request as usize].part;
                self.tally.unsent(request, part, self.plan.phase(due_ns), due_ns);
                pace.next.advance();
            }
            pace.queued = 0;
        }
        self.hand_in(now_ns, true);
        self.show();
        let server = self.carrier.server();
        Part { server, ..self.tally.finish(self.io.counts, now_ns) }
    }
}

fn ended(plan: &Plan, task: &Task, end_ns: i64) -> Ended {
    let part = plan.requests[task.request as usize].part;
    let Task { request, due_ns, start_ns, phase, .. } = *task;
    Ended { request, part, phase, due_ns, start_ns, end_ns, first_byte_ns: None, status: None }
}
