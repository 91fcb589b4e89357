//! Python bindings: argument conversion, release of the interpreter lock, errors. No logic.

mod compression;
mod http;
mod load;
mod net;
mod pprof;
mod resamples;
mod simulation;
mod special;
mod synth;
mod trace;

use pyo3::prelude::*;

/// chainmark's Rust core.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::compression::{ZstdReader, ZstdWriter};
    #[pymodule_export]
    use super::http::{Histogram, HttpLoad, http_record_classes, merge_http_loads};
    #[pymodule_export]
    use super::load::{
        BankSends, EventObserver, ReferenceWork, TransactionLoad, check_transaction_size, decode_transaction,
        encode_transaction, transaction_classes,
    };
    #[pymodule_export]
    use super::net::{DelaySwitch, NetworkNamespace, measure_round_trips};
    #[pymodule_export]
    use super::pprof::read_pprof;
    #[pymodule_export]
    use super::resamples::{block_multiplicities, resampled_ranks, weighted_ranks};
    #[pymodule_export]
    use super::simulation::{SimulatedBatches, simulate_batches};
    #[pymodule_export]
    use super::special::{beta_quantile, beta_tails, gamma_quantile};
    #[pymodule_export]
    use super::synth::{ClusterLogs, fault_kinds};
    #[pymodule_export]
    use super::trace::{RangeDecoder, TraceDecoder, scan_head};
}
