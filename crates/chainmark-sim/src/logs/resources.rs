//! The resource use of a host's process: counters that only grow while it runs, and gauges that change with its
//! collections.

use crate::logs::order::Workload;
use crate::random::{Draws, Purpose};

const MIB: f64 = 1_048_576.0;
const PAGE_BYTES: u64 = 4096;
/// Two allocation areas of 16 MiB, of which a collection finds most used.
const MINOR_COLLECTION_MIB: f64 = 30.0;
/// What survives a minor collection.
const PROMOTED_MIB: f64 = 3.0;
/// A major collection comes when the live data has grown to this multiple.
const MAJOR_AT: f64 = 1.45;
const MINOR_CENTISECONDS: f64 = 0.22;
const MAJOR_CENTISECONDS: f64 = 110.0;
/// Memory of the process outside the heap.
const BESIDES_HEAP_MIB: f64 = 62.0;
const FILE_WRITES_KIB_PER_S: f64 = 250.0;
const THREADS: u32 = 10;
/// Share of the mutator's time for steady work; blocks use the rest.
const STEADY: f64 = 0.65;
/// Ledger snapshots and epoch borders keep a core busy so long.
const BUSY_S: (f64, f64) = (6.0, 14.0);
const BUSY_PERCENT: f64 = 97.0;

/// One sample: counters since the start of the process, and gauges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub cpu_centiseconds: u64,
    pub gc_centiseconds: u64,
    pub mutator_centiseconds: u64,
    pub major_collections: u64,
    pub minor_collections: u64,
    pub allocated_bytes: u64,
    pub live_bytes: u64,
    pub heap_bytes: u64,
    pub rss_bytes: u64,
    pub file_read_bytes: u64,
    pub file_written_bytes: u64,
    pub threads: u32,
}

/// The state behind the samples.
#[derive(Debug, Clone)]
pub struct Resources {
    workload: Workload,
    /// Expected number of blocks that the host handles per second.
    blocks_per_s: f64,
    host: u32,
    seed: u64,
    sample: u64,
    sampled_ns: i64,
    mutator: f64,
    collector: f64,
    allocated_mib: f64,
    until_minor_mib: f64,
    live_mib: f64,
    heap_mib: f64,
    written_kib: f64,
    blocks: u32,
    busy_until_ns: i64,
    usage: Usage,
}

impl Resources {
    /// A process that starts now.
    pub fn new(workload: &Workload, blocks_per_s: f64, seed: u64, host: u32, started_ns: i64) -> Self {
        Self {
            workload: *workload,
            blocks_per_s,
            host,
            seed,
            sample: 0,
            sampled_ns: started_ns,
            mutator: 0.0,
            collector: 0.0,
            allocated_mib: 0.0,
            until_minor_mib: MINOR_COLLECTION_MIB,
            live_mib: workload.live_mib,
            heap_mib: workload.heap_mib,
            written_kib: 0.0,
            blocks: 0,
            // Reading the ledger back in.
            busy_until_ns: started_ns + 4_000_000_000,
            usage: Usage { threads: THREADS, ..Usage::default() },
        }
    }

    /// The host validated or forged a block.
    pub fn block(&mut self) {
        self.blocks += 1;
    }

    /// A ledger snapshot or an epoch border keeps a core busy.
    pub fn busy(&mut self, from_ns: i64, key: u64) {
        let length_s =
            BUSY_S.0 + (BUSY_S.1 - BUSY_S.0) * Draws::new(self.seed, key).unit(self.host, Purpose::Ledger, 1);
        self.busy_until_ns = self.busy_until_ns.max(from_ns + (length_s * 1e9) as i64);
    }

    /// Take a sample.
    pub fn sample(&mut self, now_ns: i64) -> Usage {
        let draws = Draws::new(self.seed ^ 0x5e50, self.sample);
        let host = self.host;
        let unit = |index| draws.unit(host, Purpose::Resources, index);
        let elapsed_s = (now_ns - self.sampled_ns).max(0) as f64 / 1e9;
        // 0.5 … 1.5 around the means.
        let (steady, per_block) = (unit(0) + 0.5, unit(1) + 0.5);
        let percent = self.workload.mutator_percent;
        let block_centiseconds = percent * (1.0 - STEADY) / self.blocks_per_s.max(1e-9);
        let mut mutator = percent * STEADY * elapsed_s * steady;
        mutator += f64::from(self.blocks) * block_centiseconds.min(60.0) * per_block;
        let busy_s = ((self.busy_until_ns - self.sampled_ns) as f64 / 1e9).clamp(0.0, elapsed_s);
        mutator = mutator.max(BUSY_PERCENT * busy_s);
        let intensity = mutator / (percent * elapsed_s).max(1e-9);
        let allocated = self.workload.allocation_mib_per_s * elapsed_s * (0.3 + 0.7 * intensity.min(8.0));
        self.mutator += mutator;
        self.collect(allocated, unit(2));
        self.written_kib += FILE_WRITES_KIB_PER_S * elapsed_s * (unit(3) + 0.5);
        self.blocks = 0;
        self.sample += 1;
        self.sampled_ns = now_ns;
        self.usage.mutator_centiseconds = self.mutator as u64;
        self.usage.gc_centiseconds = self.collector as u64;
        self.usage.cpu_centiseconds = (self.mutator + self.collector) as u64;
        self.usage.allocated_bytes = (self.allocated_mib * MIB) as u64;
        self.usage.file_written_bytes = (self.written_kib * 1024.0) as u64 / PAGE_BYTES * PAGE_BYTES;
        self.usage.heap_bytes = pages(self.heap_mib);
        self.usage.rss_bytes = pages(self.heap_mib + BESIDES_HEAP_MIB);
        self.usage
    }

    fn collect(&mut self, allocated_mib: f64, drawn: f64) {
        self.allocated_mib += allocated_mib;
        self.until_minor_mib -= allocated_mib;
        while self.until_minor_mib <= 0.0 {
            self.until_minor_mib += MINOR_COLLECTION_MIB;
            self.usage.minor_collections += 1;
            self.collector += MINOR_CENTISECONDS;
            self.live_mib += PROMOTED_MIB;
            if self.live_mib > self.workload.live_mib * MAJOR_AT {
                self.usage.major_collections += 1;
                self.collector += MAJOR_CENTISECONDS * (0.5 + drawn);
                self.live_mib = self.workload.live_mib * (0.6 + 0.1 * drawn);
                // The heap grows a little with every collection that found much alive.
                self.heap_mib += (self.workload.heap_mib * 1.05 - self.heap_mib) * 0.1 * drawn;
            }
        }
        if self.usage.minor_collections > 0 {
            self.usage.live_bytes = (self.live_mib * MIB) as u64;
        }
    }
}

fn pages(mib: f64) -> u64 {
    (mib * MIB) as u64 / PAGE_BYTES * PAGE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_grow_and_their_means_match_the_request() {
        let workload = Workload {
            tps: 12.0,
            start_s: 0.0,
            transaction_bytes: 370,
            block_transactions: 240,
            utxo_entries: 4_000_000,
            delegators: 1_000_000,
            mutator_percent: 5.2,
            allocation_mib_per_s: 21.0,
            heap_mib: 6500.0,
            live_mib: 3000.0,
        };
        let mut resources = Resources::new(&workload, 0.05, 1, 3, 0);
        let seconds = 20_000;
        let mut last = Usage::default();
        for second in 1..=seconds {
            if second % 20 == 0 {
                resources.block();
            }
            let usage = resources.sample(second * 1_000_000_000);
            assert!(usage.cpu_centiseconds >= last.cpu_centiseconds);
            assert!(usage.allocated_bytes >= last.allocated_bytes);
            assert!(usage.file_written_bytes >= last.file_written_bytes);
            let sum = usage.gc_centiseconds + usage.mutator_centiseconds;
            assert!(usage.cpu_centiseconds - sum <= 1, "the parts make up the whole");
            assert!(usage.heap_bytes < usage.rss_bytes && usage.live_bytes < usage.heap_bytes);
            last = usage;
        }
        let percent = last.mutator_centiseconds as f64 / seconds as f64;
        assert!((percent / 5.2 - 1.0).abs() < 0.1, "{percent} % of a core");
        let allocation = last.allocated_bytes as f64 / MIB / seconds as f64;
        assert!((allocation / 21.0 - 1.0).abs() < 0.15, "{allocation} MiB/s");
        assert!(last.major_collections >= 3 && last.minor_collections > 10_000);
    }
}
