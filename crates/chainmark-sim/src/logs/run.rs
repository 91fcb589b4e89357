//! Makes all logs: the network runs for a few minutes, then its hosts write their actions, many at a time.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rayon::prelude::*;
use serde::Serialize;

use crate::chain::{ChainConfig, ChainRun, Disturbances};
use crate::cluster::Cluster;
use crate::error::{Result, SimulationError};
use crate::logs::blocks::{Blocks, hex_text};
use crate::logs::documents;
use crate::logs::event::{Heard, Listener};
use crate::logs::fault::{self, Fault};
use crate::logs::host::{Host, Setup};
use crate::logs::order::LogRequest;
use crate::logs::shared::Shared;
use crate::logs::sink::Sink;
use crate::logs::transactions::Transactions;
use crate::logs::truth::TruthWriter;
use crate::random::{Draws, Purpose};
use crate::trace::{BlockNumber, GENESIS, NEVER};

const S: i64 = 1_000_000_000;
/// Maximum delay of the network's events: forging takes this long at most.
const HOLD_NS: i64 = 10 * S;
/// A chunk is as long as its events of all hosts fit into memory easily.
const CHUNK_HOST_SECONDS: f64 = 10_400.0;
const CHUNK_S: (f64, f64) = (20.0, 200.0);
/// A block is done with everywhere so long after its slot, absences aside.
const BLOCK_HORIZON_NS: i64 = 120 * S;
/// Rows must be closed before their blocks are forgotten.
const OPEN_BLOCKS_MAX: u32 = 3_500;
/// Work in progress at the end of the last slot ends within this time.
const AFTERMATH_NS: i64 = 600 * S;
const END_SPREAD_NS: f64 = 4e9;
/// Marks a folder as ours and unfinished.
const MARKER: &str = "unfinished";
const TRUTH: &str = "truth.parquet";

/// The progress of the work; may be read from another thread.
#[derive(Debug, Default)]
pub struct Progress {
    slots: AtomicU64,
    slots_total: AtomicU64,
    lines: AtomicU64,
    bytes: AtomicU64,
    cancelled: AtomicBool,
}

impl Progress {
    /// Share of the slots, lines, bytes of text.
    pub fn get(&self) -> (f64, u64, u64) {
        let total = self.slots_total.load(Ordering::Relaxed).max(1);
        let fraction = self.slots.load(Ordering::Relaxed) as f64 / total as f64;
        (fraction, self.lines.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }

    /// End the work soon; what it wrote is removed.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

/// A fault and the lines that it took, added or damaged one by one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FaultSummary {
    pub fault: &'static str,
    pub host: String,
    pub from_s: Option<f64>,
    pub until_s: Option<f64>,
    /// A probability if it has no unit.
    pub value: f64,
    pub unit: &'static str,
    pub name: String,
    pub lines: u64,
}

/// What was made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    pub hosts: usize,
    pub slots: u64,
    pub blocks: u64,
    pub blocks_on_chain: u64,
    /// Blocks that lost their battle.
    pub blocks_forked: u64,
    pub transactions: u64,
    pub lines: u64,
    pub lines_per_host_s: f64,
    pub text_bytes: u64,
    pub stored_bytes: u64,
    pub faults: Vec<FaultSummary>,
    /// Lines about blocks that came after the truth about them was closed: expected to be none.
    pub lines_after_truth: u64,
}

impl Summary {
    /// # Errors
    /// None that can happen.
    pub fn to_json(&self) -> Result<String> {
        Ok(serde_json::to_string(self)?)
    }
}

/// Logs of a cluster that are to be written to a folder.
pub struct ClusterLogs {
    order: LogRequest,
    directory: PathBuf,
    threads: usize,
    replace: bool,
    pub progress: Progress,
}

impl ClusterLogs {
    /// `threads` of 0 uses all cores. `replace` allows to replace a folder that holds such logs.
    ///
    /// # Errors
    /// The order is invalid.
    pub fn new(order_json: &str, directory: &Path, threads: usize, replace: bool) -> Result<Self> {
        let order = LogRequest::from_json(order_json)?;
        Ok(Self { order, directory: directory.to_owned(), threads, replace, progress: Progress::default() })
    }

    /// Write everything to a folder next to the requested one, then rename it.
    ///
    /// # Errors
    /// The order is invalid, the folder exists or cannot be written, or the work was cancelled. Then nothing is left
    /// behind.
    pub fn run(&self) -> Result<Summary> {
        self.check_target()?;
        let part = self.part();
        let written = self.write_to(&part).and_then(|summary| self.move_in(&part).map(|()| summary));
        if written.is_err() {
            // The first error is what matters.
            std::fs::remove_dir_all(&part).ok();
        }
        written
    }

    fn part(&self) -> PathBuf {
        let mut name = self.directory.file_name().unwrap_or_default().to_owned();
        name.push(".part");
        self.directory.with_file_name(name)
    }

    fn check_target(&self) -> Result<()> {
        let shown = self.directory.display();
        if self.directory.file_name().is_none() {
            return Err(SimulationError::impossible(
                format!("`{shown}` cannot be made: it has no name of its own"),
                "name a folder that does not exist yet",
            ));
        }
        let empty = match std::fs::read_dir(&self.directory) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
            Err(source) => return Err(SimulationError::Storage { path: shown.to_string(), source }),
        };
        if !empty && !self.replace {
            return Err(SimulationError::impossible(
                format!("the folder {shown} is not empty"),
                "name another one, or replace the logs in it with `--force`",
            ));
        }
        if !empty && !self.directory.join(TRUTH).is_file() {
            return Err(SimulationError::impossible(
                format!("the folder {shown} holds something else than synthetic logs"),
                "`--force` replaces only what chainmark has made; name another folder",
            ));
        }
        let part = self.part();
        if part.exists() {
            if !part.join(MARKER).is_file() {
                return Err(SimulationError::impossible(
                    format!("{} is in the way", part.display()),
                    "the logs are written there first; move it away",
                ));
            }
            std::fs::remove_dir_all(&part).map_err(storage(&part))?;
        }
        Ok(())
    }

    fn move_in(&self, part: &Path) -> Result<()> {
        std::fs::remove_file(part.join(MARKER)).map_err(storage(part))?;
        if self.directory.exists() {
            std::fs::remove_dir_all(&self.directory).map_err(storage(&self.directory))?;
        }
        std::fs::rename(part, &self.directory).map_err(storage(&self.directory))
    }

    fn write_to(&self, part: &Path) -> Result<Summary> {
        let order = &self.order;
        let cluster = Cluster::build(&order.scenario.cluster)?;
        let formats = order.format_by_host(&cluster)?;
        let faults = fault::read(order, &cluster)?;
        let disturbances = fault::disturbances(&faults, order);
        let run = ChainRun::new(&order.scenario, &chain_order(order, &disturbances))?;
        std::fs::create_dir_all(part).map_err(storage(part))?;
        std::fs::write(part.join(MARKER), b"").map_err(storage(part))?;
        documents::write(part, order, &cluster)?;
        let mut hosts = Vec::with_capacity(cluster.hosts());
        for (number, format) in formats.into_iter().enumerate() {
            let absences = |list: &[crate::chain::Absence]| -> Vec<(i64, i64)> {
                let own = list.iter().filter(|absence| absence.host as usize == number);
                own.map(|absence| (absence.from_ns as i64, until_ns(absence.until_ns))).collect()
            };
            let setup = Setup {
                order,
                cluster: &cluster,
                format,
                faults: faults.iter().filter(|fault| fault.host as usize == number).cloned().collect(),
                offline: absences(&disturbances.offline),
                stalled: absences(&disturbances.stalled),
                sink: Sink::create(part.join(&cluster.names[number]), order.compression)?,
            };
            let mut host = Host::new(number as u32, setup);
            host.plan_starts();
            hosts.push(host);
        }
        let truth = TruthWriter::create(&part.join(TRUTH), &cluster.names, order.system_start_ns)?;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(self.threads)
            .build()
            .map_err(|error| storage(part)(std::io::Error::other(error)))?;
        let scribe = Scribe {
            order,
            progress: &self.progress,
            pool,
            inboxes: vec![Vec::new(); hosts.len()],
            issuers: cluster.numbers.iter().map(|number| issuer(order.scenario.seed, *number)).collect(),
            blocks: Blocks::new(order.chain.security_parameter, order.workload.utxo_entries),
            transactions: Transactions::new(&order.workload, order.scenario.seed),
            block_horizon_ns: BLOCK_HORIZON_NS + longest_absence_ns(&disturbances),
            next_block: GENESIS + 1,
            counted: Counted::default(),
            cluster,
            hosts,
            run,
            truth,
        };
        scribe.write()
    }
}

fn storage(path: &Path) -> impl Fn(std::io::Error) -> SimulationError + use<> {
    let path = path.display().to_string();
    move |source| SimulationError::Storage { path: path.clone(), source }
}

fn chain_order(order: &LogRequest, disturbances: &Disturbances) -> ChainConfig {
    ChainConfig {
        slots: order.slots,
        slot_length_s: order.chain.slot_length_s,
        active_slots_coefficient: order.chain.active_slots_coefficient,
        disturbances: disturbances.clone(),
        retained_blocks: 0,
    }
}

fn issuer(seed: u64, number: u32) -> [u8; 56] {
    hex_text(seed ^ 0x0155_0e12 ^ (u64::from(number) << 32), &[])
}

fn until_ns(until_ns: u64) -> i64 {
    if until_ns == NEVER { i64::MAX } else { until_ns as i64 }
}

fn longest_absence_ns(disturbances: &Disturbances) -> i64 {
    let absences = disturbances.offline.iter().chain(&disturbances.stalled);
    absences
        .filter(|absence| absence.until_ns != NEVER)
        .map(|absence| (absence.until_ns - absence.from_ns) as i64)
        .max()
        .unwrap_or(0)
}

#[derive(Debug, Default)]
struct Counted {
    blocks: u64,
    on_chain: u64,
}

/// Everything while it is being written.
struct Scribe<'a> {
    order: &'a LogRequest,
    progress: &'a Progress,
    pool: rayon::ThreadPool,
    cluster: Cluster,
    run: ChainRun,
    hosts: Vec<Host>,
    inboxes: Vec<Vec<Heard>>,
    issuers: Vec<[u8; 56]>,
    blocks: Blocks,
    transactions: Transactions,
    truth: TruthWriter,
    block_horizon_ns: i64,
    /// The oldest block whose rows are open.
    next_block: BlockNumber,
    counted: Counted,
}

impl Scribe<'_> {
    fn write(mut self) -> Result<Summary> {
        let slot_s = self.order.chain.slot_length_s;
        let chunk_s = (CHUNK_HOST_SECONDS / self.hosts.len() as f64).clamp(CHUNK_S.0, CHUNK_S.1);
        let chunk_slots = (chunk_s / slot_s).round().max(1.0) as u64;
        self.progress.slots_total.store(self.order.slots, Ordering::Relaxed);
        let mut slot = 0;
        while slot < self.order.slots {
            if self.progress.cancelled.load(Ordering::Relaxed) {
                return Err(SimulationError::Cancelled);
            }
            let end = (slot + chunk_slots).min(self.order.slots);
            self.chunk(slot..end)?;
            self.report_progress(end);
            slot = end;
        }
        self.end()?;
        self.report_progress(self.order.slots);
        self.finish()
    }

    fn report_progress(&self, slots: u64) {
        self.progress.slots.store(slots, Ordering::Relaxed);
        self.progress.lines.store(self.hosts.iter().map(|host| host.lines).sum(), Ordering::Relaxed);
        self.progress.bytes.store(self.hosts.iter().map(|host| host.bytes).sum(), Ordering::Relaxed);
    }

    /// Let the network live up to a time.
    fn live_until(&mut self, until_ns: i64) {
        let (blocks, transactions) = (&mut self.blocks, &mut self.transactions);
        let mut listener = Listener {
            inboxes: &mut self.inboxes,
            forged: |block: &crate::trace::Block, times: &crate::trace::LoopTimes| {
                let parent_end = blocks.get(block.parent).transactions_end;
                let end = transactions.take(parent_end, times.snapshot_ns as i64);
                blocks.insert(block, end);
            },
        };
        self.run.advance(until_ns as u64, &mut listener);
        self.transactions.plan_until(until_ns);
    }

    fn chunk(&mut self, slots: std::ops::Range<u64>) -> Result<()> {
        let end_ns = self.order.slot_start_ns(slots.end);
        self.live_until(end_ns + HOLD_NS);
        self.for_each_host(|host, shared| {
            host.plan_slots(slots.clone(), shared);
            host.plan_periodic(end_ns, shared);
            host.plan_heard(shared);
            host.plan_transactions(end_ns, shared);
            host.write_until(end_ns, shared)
        })?;
        let reported = self.hosts.iter().filter(|host| !host.refills).map(|host| host.next_transaction).min();
        self.transactions.forget(reported.unwrap_or_else(|| self.transactions.end()));
        let slot_ns = self.order.chain.slot_length_s * 1e9;
        let still_open = (slot_ns.max(S as f64) / slot_ns).ceil() as u64 + 1;
        self.close_slots(slots.end.saturating_sub(still_open))?;
        self.close_blocks(end_ns)
    }

    /// After the last slot: complete the work in progress, then shut the hosts down.
    fn end(&mut self) -> Result<()> {
        let slots_end_ns = self.order.slot_start_ns(self.order.slots);
        let mut until_ns = slots_end_ns + HOLD_NS;
        while !self.run.finished() && until_ns < slots_end_ns + AFTERMATH_NS {
            until_ns += HOLD_NS;
            self.live_until(until_ns);
        }
        self.for_each_host(|host, shared| {
            host.plan_heard(shared);
            Ok(())
        })?;
        let last_ns = self.hosts.iter().map(Host::last_block_event_ns).max().unwrap_or(0).max(slots_end_ns);
        let draws = Draws::new(self.order.scenario.seed ^ 0xe0d, 0);
        self.for_each_host(|host, shared| {
            let later = draws.unit(host.number, Purpose::Noise, 0) * END_SPREAD_NS;
            host.end(last_ns + 20_000_000 + later as i64, shared)
        })?;
        self.close_slots(u64::MAX)?;
        let best = self.run.best_tip();
        while self.next_block <= self.blocks.newest() {
            self.close_block(best)?;
        }
        let faults = self.hosts.iter().flat_map(|host| host.damage.faults.iter().zip(&host.damage.lines));
        for (fault, lines) in faults {
            self.truth.fault(fault, *lines)?;
        }
        Ok(())
    }

    fn for_each_host(&mut self, work: impl Fn(&mut Host, &Shared) -> Result<()> + Sync) -> Result<()> {
        let shared = Shared {
            order: self.order,
            run: &self.run,
            blocks: &self.blocks,
            transactions: &self.transactions,
            issuers: &self.issuers,
        };
        let (hosts, inboxes) = (&mut self.hosts, &mut self.inboxes);
        let results: Vec<Result<()>> = self.pool.install(|| {
            let hosts = hosts.par_iter_mut().zip(inboxes.par_iter_mut()).with_max_len(1);
            hosts
                .map(|(host, inbox)| {
                    host.inbox.append(inbox);
                    work(host, &shared)
                })
                .collect()
        });
        // Of several errors always the same one.
        results.into_iter().collect()
    }

    // ---- the truth ---------------------------------------------------------------------------------------------

    fn close_slots(&mut self, before: u64) -> Result<()> {
        let rows = self.hosts.iter_mut().map(|host| host.slots.take_before(before));
        let mut rows: Vec<_> = rows.map(|rows| rows.into_iter().peekable()).collect();
        while let Some(slot) = rows.iter_mut().filter_map(|rows| rows.peek().map(|row| row.slot)).min() {
            for (host, rows) in rows.iter_mut().enumerate() {
                if let Some(row) = rows.next_if(|row| row.slot == slot) {
                    self.truth.slot(host as u32, &row)?;
                }
            }
        }
        Ok(())
    }

    /// Close the rows of the blocks that all hosts agree about and that are old enough.
    fn close_blocks(&mut self, now_ns: i64) -> Result<()> {
        let tips = self.hosts.iter().filter(|host| host.online(now_ns)).map(|host| host.tip);
        let agreed = tips.reduce(|a, b| self.blocks.common_ancestor(a, b));
        let newest = self.blocks.newest();
        while self.next_block <= newest {
            let number = self.next_block;
            let crowded = newest - number > OPEN_BLOCKS_MAX;
            let agreed_on = agreed.filter(|agreed| {
                let block = &self.blocks.get(number).block;
                let known = self.blocks.remembers(number);
                let over_ns = self.order.slot_start_ns(block.slot) + self.block_horizon_ns;
                !known || (block.height <= self.blocks.get(*agreed).block.height && over_ns < now_ns)
            });
            match agreed_on {
                Some(agreed) => self.close_block(agreed)?,
                None if crowded => self.close_block(self.run.best_tip())?,
                None => break,
            }
        }
        Ok(())
    }

    /// Write what all hosts did with the oldest open block; `tip` is a block of the chain that remains.
    fn close_block(&mut self, tip: BlockNumber) -> Result<()> {
        let number = self.next_block;
        self.next_block += 1;
        let known = self.blocks.remembers(number);
        let on_chain = known && self.blocks.common_ancestor(number, tip) == number;
        self.counted.blocks += u64::from(known);
        self.counted.on_chain += u64::from(on_chain);
        for host in &mut self.hosts {
            let row = host.blocks.take(number);
            if let Some(row) = row.filter(|_| known) {
                let text = self.blocks.get(number);
                let parent = self.blocks.get(text.block.parent);
                self.truth.block(host.number, text, parent, on_chain, &row)?;
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Summary> {
        self.truth.finish()?;
        let seconds = |ns: i64| (ns > i64::MIN && ns < i64::MAX).then_some(ns as f64 / 1e9);
        let named = |(fault, lines): (&Fault, &u64)| FaultSummary {
            fault: fault.kind.info().name,
            host: self.cluster.names[fault.host as usize].clone(),
            from_s: seconds(fault.from_ns),
            until_s: seconds(fault.until_ns),
            value: fault.value,
            unit: fault.kind.info().unit(),
            name: fault.name.clone(),
            lines: *lines,
        };
        let faults = self.hosts.iter().flat_map(|host| host.damage.faults.iter().zip(&host.damage.lines));
        let lines: u64 = self.hosts.iter().map(|host| host.lines).sum();
        let host_s = self.hosts.len() as f64 * self.order.slots as f64 * self.order.chain.slot_length_s;
        Ok(Summary {
            hosts: self.hosts.len(),
            slots: self.order.slots,
            blocks: self.counted.blocks,
            blocks_on_chain: self.counted.on_chain,
            blocks_forked: self.counted.blocks - self.counted.on_chain,
            transactions: self.transactions.end(),
            lines,
            lines_per_host_s: lines as f64 / host_s,
            text_bytes: self.hosts.iter().map(|host| host.bytes).sum(),
            stored_bytes: self.hosts.iter().map(|host| host.sink.stored).sum(),
            faults: faults.map(named).collect(),
            lines_after_truth: self.hosts.iter().map(|host| host.blocks.too_late).sum(),
        })
    }
}
