//! The data of each message: its keys in alphabetical order, its numbers as the nodes print them.

use crate::logs::blocks::BlockText;
use crate::logs::order::Format;
use crate::logs::resources::Usage;
use crate::logs::text::{push_hex8, push_integer, push_seconds};
use crate::trace::GENESIS;

/// Appends text and numbers, one after the other.
pub struct Pen<'a>(pub &'a mut Vec<u8>);

impl Pen<'_> {
    #[inline]
    pub fn text(&mut self, text: impl AsRef<[u8]>) -> &mut Self {
        self.0.extend_from_slice(text.as_ref());
        self
    }

    #[inline]
    pub fn number(&mut self, value: impl itoa::Integer) -> &mut Self {
        push_integer(self.0, value);
        self
    }

    fn seconds(&mut self, ns: i64) -> &mut Self {
        push_seconds(self.0, ns);
        self
    }

    fn flag(&mut self, value: bool) -> &mut Self {
        self.text(if value { &b"true"[..] } else { b"false" })
    }

    /// `hash@slot`, or the text for the genesis block.
    fn point(&mut self, block: &BlockText) -> &mut Self {
        if block.block.number == GENESIS {
            return self.text("genesis (origin)");
        }
        self.text(block.hash).text("@").number(block.block.slot)
    }

    fn hash_or_genesis(&mut self, block: &BlockText) -> &mut Self {
        if block.block.number == GENESIS { self.text("GenesisHash") } else { self.text(block.hash) }
    }

    /// A point as an object, in the form of the chain database's own messages.
    fn real_point(&mut self, block: &BlockText) -> &mut Self {
        self.text("{\"hash\":\"").text(block.hash).text("\",\"kind\":\"Point\",\"slot\":").number(block.block.slot);
        self.text("}")
    }

    /// A point as an object, in the form of the selected chain's messages.
    pub fn block_point(&mut self, block: &BlockText) -> &mut Self {
        if block.block.number == GENESIS {
            return self.text("{\"kind\":\"GenesisPoint\"}");
        }
        self.text("{\"headerHash\":\"").text(block.hash).text("\",\"kind\":\"BlockPoint\",\"slot\":");
        self.number(block.block.slot).text("}")
    }

    fn kind(&mut self, format: Format, modern: &str, legacy: &str) -> &mut Self {
        let kind = if format == Format::Legacy { legacy } else { modern };
        self.text("\"kind\":\"").text(kind).text("\"")
    }

    fn peer(&mut self, connection: &[u8]) -> &mut Self {
        self.text("\"peer\":{").text(connection).text("}")
    }
}

// ---- the forge loop --------------------------------------------------------------------------------------------

/// The figures of the ledger that the older versions print at the loop start, and the newer ones by themselves.
pub struct Ledger<'a> {
    pub tip: &'a BlockText,
    pub delegators: u64,
}

pub fn loop_start(pen: &mut Pen, format: Format, slot: u64, ledger: &Ledger) {
    match format {
        Format::Legacy => {
            pen.text("\"chainDensity\":").text(&*ledger.tip.density_short);
            pen.text(",\"credentials\":\"Cardano\",\"delegMapSize\":").number(ledger.delegators);
            pen.text(",\"kind\":\"TraceStartLeadershipCheck\",\"slot\":").number(slot);
            pen.text(",\"utxoSize\":").number(ledger.tip.utxo_entries);
        }
        Format::V10_4 => ledger_figures(pen, "TraceStartLeadershipCheck", slot, ledger),
        _ => slot_only(pen, "TraceStartLeadershipCheck", slot),
    }
}

pub fn ledger_figures(pen: &mut Pen, kind: &str, slot: u64, ledger: &Ledger) {
    pen.text("\"chainDensity\":").text(&*ledger.tip.density_text);
    pen.text(",\"delegMapSize\":").number(ledger.delegators).text(",\"kind\":\"").text(kind);
    pen.text("\",\"slot\":").number(slot).text(",\"utxoSize\":").number(ledger.tip.utxo_entries);
}

pub fn slot_only(pen: &mut Pen, kind: &str, slot: u64) {
    pen.text("\"kind\":\"").text(kind).text("\",\"slot\":").number(slot);
}

pub fn block_context(pen: &mut Pen, slot: u64, tip: &BlockText) {
    pen.text("\"current slot\":").number(slot).text(",\"kind\":\"TraceBlockContext\",\"tip\":\"").point(tip);
    // The number of the block to come.
    let number = if tip.block.number == GENESIS { 0 } else { tip.block_no + 1 };
    pen.text("\",\"tipBlockNo\":").number(number);
}

pub fn state_info(pen: &mut Pen) {
    pen.text("\"credentials\":\"Cardano\",\"endPeriod\":62,\"evolution\":0,\"kind\":\"KESInfo\",\"startPeriod\":0");
}

pub fn ticked(pen: &mut Pen, slot: u64, parent: &BlockText) {
    pen.text("\"kind\":\"TraceForgeTickedLedgerState\",\"prev\":\"").point(parent).text("\",\"slot\":").number(slot);
}

pub fn snapshot(pen: &mut Pen, slot: u64, parent: &BlockText) {
    pen.text("\"kind\":\"TraceForgingMempoolSnapshot\",\"mempoolHash\":\"").hash_or_genesis(parent);
    let mempool_slot = if parent.block.number == GENESIS { 0 } else { parent.block.slot + 1 };
    pen.text("\",\"mempoolSlot\":").number(mempool_slot);
    pen.text(",\"prev\":\"").point(parent).text("\",\"slot\":").number(slot);
}

pub fn forged(pen: &mut Pen, block: &BlockText, parent: &BlockText) {
    pen.text("\"block\":\"").text(block.hash).text("\",\"blockNo\":").number(block.block_no);
    pen.text(",\"blockPrev\":\"").hash_or_genesis(parent);
    pen.text("\",\"kind\":\"TraceForgedBlock\",\"slot\":").number(block.block.slot);
}

pub fn adopted_block(pen: &mut Pen, block: &BlockText) {
    pen.text("\"blockHash\":\"").text(block.hash).text("\",\"blockSize\":").number(block.block.bytes);
    pen.text(",\"kind\":\"TraceAdoptedBlock\",\"slot\":").number(block.block.slot);
}

// ---- headers and bodies ----------------------------------------------------------------------------------------

pub fn downloaded_header(pen: &mut Pen, format: Format, block: &BlockText, connection: &[u8]) {
    pen.text("\"block\":\"").text(block.hash).text("\",\"blockNo\":").number(block.block_no).text(",");
    pen.kind(format, "DownloadedHeader", "ChainSyncClientEvent.TraceDownloadedHeader").text(",");
    pen.peer(connection).text(",\"slot\":").number(block.block.slot);
}

pub fn validated_header(pen: &mut Pen, block: &BlockText, connection: &[u8]) {
    pen.text("\"headerHash\":\"").text(block.hash).text("\",\"kind\":\"ValidatedHeader\",").peer(connection);
}

pub fn gave_token(pen: &mut Pen, block: &BlockText, connection: &[u8]) {
    // The best block number before this header.
    pen.text("\"blockNo\":").number(block.block_no.saturating_sub(1)).text(",\"headerHash\":\"").text(block.hash);
    pen.text("\",\"kind\":\"TraceGaveLoPToken\",").peer(connection);
    pen.text(",\"tokenAdded\":").flag(block.block_no > 0);
}

pub fn jumping_waiting(pen: &mut Pen, connection: &[u8]) {
    peer_only(pen, "TraceJumpingWaitingForNextInstruction", connection);
}

pub fn jumping_instruction(pen: &mut Pen, connection: &[u8]) {
    pen.text("\"instr\":{\"kind\":\"RunNormally\"},\"kind\":\"TraceJumpingInstructionIs\",").peer(connection);
}

pub fn rolled_back(pen: &mut Pen, format: Format, tip: &BlockText, connection: &[u8]) {
    pen.kind(format, "RolledBack", "ChainSyncClientEvent.TraceRolledBack").text(",").peer(connection);
    pen.text(",\"tip\":").block_point(tip);
}

pub fn peer_only(pen: &mut Pen, kind: &str, connection: &[u8]) {
    pen.text("\"kind\":\"").text(kind).text("\",").peer(connection);
}

pub fn send_fetch(pen: &mut Pen, format: Format, head: &BlockText, length: u64, connection: &[u8], one_way_s: f64) {
    if format == Format::Legacy {
        pen.text("\"deltaq\":{\"G\":").seconds((one_way_s * 1e9) as i64).text("},");
    }
    pen.text("\"head\":\"").text(head.hash).text("\",\"kind\":\"SendFetchRequest\",\"length\":").number(length);
    pen.text(",").peer(connection);
}

pub fn completed_fetch(pen: &mut Pen, block: &BlockText, delay_ns: i64, connection: &[u8]) {
    pen.text("\"block\":\"").text(block.hash).text("\",\"delay\":").seconds(delay_ns);
    pen.text(",\"kind\":\"CompletedBlockFetch\",").peer(connection).text(",\"size\":").number(block.block.bytes);
}

pub fn send_block(pen: &mut Pen, format: Format, block: &BlockText, connection: &[u8]) {
    pen.text("\"block\":\"").text(block.hash).text("\",");
    pen.kind(format, "BlockFetchServer", "TraceBlockFetchServerSendBlock").text(",").peer(connection);
}

pub fn stream(pen: &mut Pen, format: Format, block: &BlockText) {
    let slot = block.block.slot;
    let mut range = |key: &str, bound: &str| {
        pen.text(key).text(bound).text(" (RealPoint (SlotNo ").number(slot).text(") ").text(block.hash).text(")\"");
    };
    range("\"from\":\"", "StreamFromInclusive");
    pen.text(",").kind(format, "StreamFromVolatileDB", "TraceIteratorEvent.StreamFromVolatileDB");
    pen.text(",\"point\":\"[\\\"").point(block).text("\\\"]\"");
    pen.text(",\"to\":\"StreamToInclusive (RealPoint (SlotNo ").number(slot).text(") ").text(block.hash).text(")\"");
}

/// An announcement to a downstream peer. `block` is added, or rolled back to.
pub struct Announcement<'a> {
    pub block: &'a BlockText,
    pub rolls_back: bool,
    pub blocking: bool,
    /// None leaves the key out, as the nodes do on the falling edge.
    pub rising: Option<bool>,
    pub tip: &'a BlockText,
}

pub fn announcement(pen: &mut Pen, format: Format, announced: &Announcement, connection: &[u8]) {
    if !announced.rolls_back {
        pen.text("\"addBlock\":\"").point(announced.block).text("\",");
    }
    pen.text("\"blockingRead\":").flag(announced.blocking).text(",");
    pen.kind(format, "ChainSyncServer.Update", "ChainSyncServerEvent.TraceChainSyncServerUpdate");
    pen.text(",").peer(connection);
    if let Some(rising) = announced.rising {
        pen.text(",\"risingEdge\":").flag(rising);
    }
    if announced.rolls_back {
        pen.text(",\"rollBackTo\":\"").point(announced.block).text("\"");
    }
    if announced.tip.block.number == GENESIS {
        pen.text(",\"tip\":{\"block\":\"genesis\",\"blockNo\":-1,\"slot\":0}");
    } else {
        pen.text(",\"tip\":{\"block\":\"")
            .text(announced.tip.hash)
            .text("\",\"blockNo\":")
            .number(announced.tip.block_no);
        pen.text(",\"slot\":").number(announced.tip.block.slot).text("}");
    }
}

// ---- the chain database ----------------------------------------------------------------------------------------

/// Messages that carry a point and an edge.
pub fn queue(pen: &mut Pen, format: Format, block: &BlockText, rising: bool) {
    pen.text("\"block\":").real_point(block).text(",");
    pen.kind(format, "AddedBlockToQueue", "TraceAddBlockEvent.AddedBlockToQueue");
    pen.text(if rising { ",\"risingEdge\":true" } else { ",\"queueSize\":1" });
}

pub fn starvation_ended(pen: &mut Pen, block: &BlockText) {
    pen.text("\"fallingEdge\":").real_point(block).text(",\"kind\":\"ChainSelStarvation\"");
}

pub fn starvation_began(pen: &mut Pen) {
    pen.text("\"kind\":\"ChainSelStarvation\",\"risingEdge\":true");
}

pub fn volatile(pen: &mut Pen, format: Format, block: &BlockText, rising: bool) {
    pen.text("\"block\":").real_point(block).text(",\"blockNo\":\"").number(block.block_no).text("\",");
    pen.kind(format, "AddedBlockToVolatileDB", "TraceAddBlockEvent.AddedBlockToVolatileDB");
    if rising {
        pen.text(",\"risingEdge\":true");
    }
}

/// A message about a block that carries nothing else.
pub fn real_point_only(pen: &mut Pen, format: Format, block: &BlockText, modern: &str, legacy: &str) {
    pen.text("\"block\":").real_point(block).text(",").kind(format, modern, legacy);
}

pub fn limit_on_eagerness(pen: &mut Pen, anchor: &BlockText, head: &BlockText) {
    pen.text("\"curChain\":{\"anchor\":").block_point(anchor).text(",\"head\":").block_point(head);
    pen.text("},\"kind\":\"ChainSelectionLoEDebug\",\"loeFrag\":\"LoE is disabled\"");
}

pub fn changing_selection(pen: &mut Pen, block: &BlockText) {
    pen.text("\"block\":").block_point(block).text(",\"kind\":\"TraceAddBlockEvent.ChangingSelection\"");
}

pub fn tentative(pen: &mut Pen, format: Format, block: &BlockText, rising: bool) {
    pen.text("\"block\":\"").point(block).text("\",");
    pen.kind(format, "SetTentativeHeader", "TraceAddBlockEvent.PipeliningEvent.SetTentativeHeader");
    if rising {
        pen.text(",\"risingEdge\":true");
    }
}

pub fn tentative_outdated(pen: &mut Pen, format: Format, block: &BlockText) {
    pen.text("\"block\":\"").point(block).text("\",");
    pen.kind(format, "OutdatedTentativeHeader", "TraceAddBlockEvent.PipeliningEvent.OutdatedTentativeHeader");
}

/// A change of the selected chain: its new end, its old one, the keys of the pools that forged them.
pub struct Change<'a> {
    pub new: &'a BlockText,
    pub new_issuer: &'a [u8; 56],
    pub old: &'a BlockText,
    pub old_issuer: &'a [u8; 56],
    pub switched: bool,
}

pub fn selection(pen: &mut Pen, format: Format, change: &Change) {
    if format == Format::Legacy {
        let delta = change.new.block.height as i64 - change.old.block.height as i64;
        pen.text("\"chainLengthDelta\":").number(delta).text(",\"kind\":\"TraceAddBlockEvent.");
        pen.text(if change.switched { "SwitchedToAFork" } else { "AddedToCurrentChain" });
        pen.text("\",\"newtip\":\"").point(change.new).text("\"");
        if change.switched {
            pen.text(",\"realFork\":true");
        }
        return;
    }
    let kind = if change.switched { "TraceAddBlockEvent.SwitchedToAFork" } else { "AddedToCurrentChain" };
    let (new_view, old_view) = match format {
        Format::V10_7 => (",\"newSuffixSelectView\":", ",\"oldSuffixSelectView\":"),
        _ => (",\"newTipSelectView\":", ",\"oldTipSelectView\":"),
    };
    pen.text("\"kind\":\"").text(kind).text("\"").text(new_view);
    select_view(pen, format, change.new, change.new_issuer);
    pen.text(",\"newtip\":\"").point(change.new).text("\"");
    if change.old.block.number != GENESIS {
        pen.text(old_view);
        select_view(pen, format, change.old, change.old_issuer);
    }
}

fn select_view(pen: &mut Pen, format: Format, block: &BlockText, issuer: &[u8; 56]) {
    let (length, kind) = match format {
        Format::V10_4 => ("{\"chainLength\":", "PraosChainSelectView"),
        _ => ("{\"blockNo\":", "PraosTiebreakerView"),
    };
    pen.text(length).number(block.block_no).text(",\"issueNo\":0,\"issuerHash\":\"").text(issuer);
    pen.text("\",\"kind\":\"").text(kind).text("\",\"slotNo\":").number(block.block.slot);
    pen.text(",\"tieBreakVRF\":\"").text(block.vrf);
    pen.text(if format == Format::V10_7 { "\",\"weightBoost\":0}" } else { "\"}" });
}

pub fn copied_to_immutable(pen: &mut Pen, format: Format, block: &BlockText) {
    pen.kind(format, "CopiedBlockToImmutableDB", "TraceCopyToImmutableDBEvent.CopiedBlockToImmutableDB");
    pen.text(",\"slot\":").block_point(block);
}

pub fn collection(pen: &mut Pen, kind: &str, block: &BlockText) {
    pen.text("\"kind\":\"").text(kind).text("\",\"slot\":{\"kind\":\"SlotNo\",\"slot\":").number(block.block.slot);
    pen.text("}");
}

/// `took_ns` is in the falling edge.
pub fn took_snapshot(pen: &mut Pen, format: Format, block: &BlockText, took_ns: Option<i64>) {
    if format != Format::Legacy {
        pen.text("\"enclosedTime\":{");
        match took_ns {
            Some(ns) => pen.text("\"contents\":").seconds(ns).text(",\"tag\":\"FallingEdgeWith\"},"),
            None => pen.text("\"tag\":\"RisingEdge\"},"),
        };
    }
    pen.kind(format, "TookSnapshot", "TraceSnapshotEvent.TookSnapshot");
    pen.text(",\"snapshot\":{\"kind\":\"snapshot\"},\"tip\":\"RealPoint (SlotNo ").number(block.block.slot);
    pen.text(") ").text(block.hash).text("\"");
}

// ---- transactions ----------------------------------------------------------------------------------------------

pub fn request_count(pen: &mut Pen, kind: &str, count: u64, connection: &[u8]) {
    pen.text("\"count\":").number(count).text(",\"kind\":\"").text(kind).text("\",").peer(connection);
}

pub fn processed(pen: &mut Pen, accepted: u64, rejected: i64, connection: &[u8]) {
    pen.text("\"accepted\":").number(accepted).text(",\"kind\":\"TraceTxSubmissionProcessed\",").peer(connection);
    pen.text(",\"rejected\":").number(rejected);
}

/// What a mempool holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MempoolSize {
    pub transactions: u64,
    pub bytes: u64,
}

fn mempool_size(pen: &mut Pen, size: MempoolSize) {
    pen.text("\"mempoolSize\":{\"bytes\":").number(size.bytes).text(",\"numTxs\":").number(size.transactions);
    pen.text("}");
}

pub fn one_transaction(pen: &mut Pen, kind: &str, size: MempoolSize, id: u32) {
    pen.text("\"kind\":\"").text(kind).text("\",");
    mempool_size(pen, size);
    pen.text(",\"tx\":{\"txid\":\"");
    push_hex8(pen.0, id);
    pen.text("\"}");
}

pub fn removed(pen: &mut Pen, format: Format, size: MempoolSize, ids: impl Iterator<Item = u32>) {
    pen.text("\"kind\":\"TraceMempoolRemoveTxs\",");
    mempool_size(pen, size);
    pen.text(",\"txs\":[");
    let (open, close) =
        if format == Format::Legacy { ("{\"txid\":\"", "\"}") } else { ("{\"tx\":{\"txid\":\"", "\"}}") };
    for (place, id) in ids.enumerate() {
        if place > 0 {
            pen.text(",");
        }
        pen.text(open);
        push_hex8(pen.0, id);
        pen.text(close);
    }
    pen.text("]");
}

// ---- the process -----------------------------------------------------------------------------------------------

pub fn resources(pen: &mut Pen, usage: &Usage) {
    pen.text("\"Alloc\":").number(usage.allocated_bytes).text(",\"CentiBlkIO\":0,\"CentiCpu\":");
    pen.number(usage.cpu_centiseconds).text(",\"CentiGC\":").number(usage.gc_centiseconds);
    pen.text(",\"CentiMut\":").number(usage.mutator_centiseconds);
    pen.text(",\"FsRd\":").number(usage.file_read_bytes).text(",\"FsWr\":").number(usage.file_written_bytes);
    pen.text(",\"GcsMajor\":").number(usage.major_collections).text(",\"GcsMinor\":").number(usage.minor_collections);
    pen.text(",\"Heap\":").number(usage.heap_bytes).text(",\"Live\":").number(usage.live_bytes);
    pen.text(",\"NetRd\":0,\"NetWr\":0,\"RSS\":").number(usage.rss_bytes);
    pen.text(",\"Threads\":").number(usage.threads).text(",\"kind\":\"ResourceStats\"");
}
