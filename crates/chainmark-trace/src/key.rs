//! Keys of the members that the analysis needs.

use crate::json::Key;

macro_rules! keys {
    ($($(#[$doc:meta])* $list:ident { $($name:ident = $key:literal;)* })*) => {
        $(
            $(pub const $name: Key = Key::new($key);)*
            $(#[$doc])*
            pub const $list: &[Key] = &[$($name,)*];
        )*
    };
}

keys! {
    /// Members of `data`.
    OF_DATA {
        KIND = "kind";
        CREDENTIALS = "credentials";
        VAL = "val";
        SLOT = "slot";
        UTXO_SIZE = "utxoSize";
        CHAIN_DENSITY = "chainDensity";
        CURRENT_SLOT = "current slot";
        TIP_BLOCK_NO = "tipBlockNo";
        TIP = "tip";
        PREV = "prev";
        BLOCK_NO = "blockNo";
        BLOCK = "block";
        BLOCK_PREV = "blockPrev";
        HEAD = "head";
        LENGTH = "length";
        PEER = "peer";
        RISING_EDGE = "risingEdge";
        BLOCKING_READ = "blockingRead";
        ROLL_BACK_TO = "rollBackTo";
        ADD_BLOCK = "addBlock";
        NEWTIP = "newtip";
        CHAIN_LENGTH_DELTA = "chainLengthDelta";
        BLOCK_HASH = "blockHash";
        BLOCK_SIZE = "blockSize";
        SIZE = "size";
        TX_IDS = "txIds";
        COUNT = "count";
        ACCEPTED = "accepted";
        REJECTED = "rejected";
        MEMPOOL_SIZE = "mempoolSize";
        SUMMARY = "summary";
        ENCLOSED_TIME = "enclosedTime";
        CENTI_CPU = "CentiCpu";
        CENTI_GC = "CentiGC";
        CENTI_MUT = "CentiMut";
        GCS_MAJOR = "GcsMajor";
        GCS_MINOR = "GcsMinor";
        ALLOC = "Alloc";
        LIVE = "Live";
        HEAP = "Heap";
        RSS = "RSS";
        CENTI_BLK_IO = "CentiBlkIO";
        NET_RD = "NetRd";
        NET_WR = "NetWr";
        FS_RD = "FsRd";
        FS_WR = "FsWr";
        THREADS = "Threads";
        APPLICATION_VERSION = "applicationVersion";
        GIT_REVISION = "gitRevision";
        COMPILER_VERSION = "compilerVersion";
        NETWORK_MAGIC = "networkMagic";
        VERSION = "version";
        COMMIT = "commit";
    }
    /// Members of members of `data`.
    OF_MEMBERS {
        NUM_TXS = "numTxs";
        CONNECTION_ID = "connectionId";
        LOCAL = "local";
        REMOTE = "remote";
        ADDR = "addr";
        PORT = "port";
        UN_BLOCK_NO = "unBlockNo";
        TAG = "tag";
        SS_TX_SENT = "ssTxSent";
        SS_FAILURES = "ssFailures";
        SS_ELAPSED = "ssElapsed";
        SS_THREADWISE_TPS = "ssThreadwiseTps";
    }
}
