//! The content of each message, read from the members of its `data`.

use crate::decode::fields::{Body, Fields};
use crate::decode::peers::Peers;
use crate::decode::{Line, Problem};
use crate::event::{Event, Fact, Hash, Resources};
use crate::json::{Key, Span, string};
use crate::key;
use crate::message::Message;

/// The class of a line of `message` with its content.
#[inline(always)]
pub(super) fn line_of<'a>(message: Message, at_ns: i64, fields: Fields<'_>, peers: &'a mut Peers) -> Body<Line<'a>> {
    if let Some((name, value)) = only_number(message, fields) {
        let fact = fact_of_number(message, fields.unsigned_value(name, value)?);
        return Ok(Line::Event(Event { at_ns, fact }));
    }
    let slot = || fields.unsigned(key::SLOT);
    let fact = match message {
        Message::Ticked => Fact::Ticked { slot: slot()?, prev: fields.point(key::PREV) },
        Message::BlockContext => Fact::BlockContext {
            slot: fields.unsigned(key::CURRENT_SLOT)?,
            block_no: fields.signed(key::TIP_BLOCK_NO)?.saturating_sub(1),
            tip: fields.point(key::TIP),
        },
        Message::LoopStart => Fact::LoopStart {
            slot: slot()?,
            utxo_entries: fields.unsigned_or(key::UTXO_SIZE, 0)?,
            density: fields.double_or(key::CHAIN_DENSITY, 0.0)?,
        },
        Message::Processed => Fact::TransactionsProcessed {
            accepted: fields.unsigned(key::ACCEPTED)?,
            rejected: fields.signed(key::REJECTED)?,
        },
        Message::MempoolRejected => Fact::TransactionRejected,
        _ => return rare_line_of(message, at_ns, fields, peers),
    };
    Ok(Line::Event(Event { at_ns, fact }))
}

/// A message whose content is only one number: its name, and the position of the number.
#[inline(always)]
pub(super) fn only_number(message: Message, fields: Fields<'_>) -> Option<(&'static str, Span)> {
    let key = match message {
        Message::LedgerState | Message::LedgerView | Message::Leads | Message::LeadsNot | Message::MempoolSnapshot => {
            key::SLOT
        }
        // Old nodes log more.
        Message::LoopStart if !fields.get(key::UTXO_SIZE).present() && !fields.get(key::CHAIN_DENSITY).present() => {
            key::SLOT
        }
        Message::MempoolAdded | Message::MempoolRemoved => {
            let size = fields.scanner.member(fields.get(key::MEMPOOL_SIZE), key::NUM_TXS);
            return Some(("mempoolSize.numTxs", size));
        }
        Message::Collected => key::COUNT,
        _ => return None,
    };
    Some((key.name, fields.get(key)))
}

/// The content of a message from its only number.
#[inline(always)]
pub(super) fn fact_of_number(message: Message, number: u64) -> Fact<'static> {
    match message {
        Message::LedgerState => Fact::LedgerState { slot: number },
        Message::LedgerView => Fact::LedgerView { slot: number },
        Message::Leads => Fact::Leadership { slot: number, leads: true },
        Message::LeadsNot => Fact::Leadership { slot: number, leads: false },
        Message::MempoolSnapshot => Fact::MempoolSnapshot { slot: number },
        Message::LoopStart => Fact::LoopStart { slot: number, utxo_entries: 0, density: 0.0 },
        Message::MempoolAdded | Message::MempoolRemoved => Fact::MempoolSize { transactions: number },
        Message::Collected => Fact::TransactionsCollected { count: number },
        _ => unreachable!("no message of one number"),
    }
}

/// Messages once per second, once per block, or less often.
fn rare_line_of<'a>(message: Message, at_ns: i64, fields: Fields<'_>, peers: &'a mut Peers) -> Body<Line<'a>> {
    let fact = match message {
        Message::Resources => Fact::Resources(resources(fields)?),
        Message::LedgerMetrics => Fact::LedgerMetrics {
            slot: fields.unsigned(key::SLOT)?,
            utxo_entries: fields.unsigned(key::UTXO_SIZE)?,
            density: fields.double(key::CHAIN_DENSITY)?,
        },
        Message::Forged => Fact::Forged {
            slot: fields.unsigned(key::SLOT)?,
            block_no: fields.unsigned(key::BLOCK_NO)?,
            block: fields.hash(key::BLOCK)?,
            parent: parent(fields)?,
        },
        Message::Noticed => Fact::Noticed {
            slot: fields.unsigned(key::SLOT)?,
            block_no: block_number(fields)?,
            block: fields.hash(key::BLOCK)?,
            peer: peers.read(fields),
        },
        Message::Requested => Fact::Requested {
            head: fields.hash(key::HEAD)?,
            length: fields.unsigned(key::LENGTH)?,
            peer: peers.read(fields),
        },
        Message::Fetched => Fact::Fetched {
            block: fields.hash(key::BLOCK)?,
            size_bytes: fields.unsigned(key::SIZE).ok(),
            peer: peers.read(fields),
        },
        Message::AnnouncedLegacy => Fact::Announced { block: fields.hash(key::BLOCK)? },
        Message::Announced => match announced(fields)? {
            Some(block) => Fact::Announced { block },
            None => return Ok(Line::Skipped),
        },
        Message::Sent => Fact::Sent { block: fields.hash(key::BLOCK)? },
        Message::Added => Fact::Added {
            block: fields.leading_hash(key::NEWTIP)?,
            delta: fields.unsigned_or(key::CHAIN_LENGTH_DELTA, 1)?,
        },
        Message::Switched => Fact::Switched {
            block: fields.leading_hash(key::NEWTIP)?,
            delta: fields.unsigned_or(key::CHAIN_LENGTH_DELTA, 1)?,
        },
        Message::Adopted => {
            let (block, size_bytes) = (fields.hash(key::BLOCK_HASH)?, fields.unsigned(key::BLOCK_SIZE)?);
            Fact::SelfAdopted { slot: fields.unsigned(key::SLOT).ok(), block, size_bytes }
        }
        Message::LedgerSnapshot => Fact::LedgerSnapshot { renamed: false },
        Message::LedgerSnapshotRenamed => {
            // The line comes when the snapshot begins and again when it is done, which is the one that counts.
            let edge = fields.scanner.member(fields.get(key::ENCLOSED_TIME), key::TAG);
            if string(fields.text(), edge).as_deref() == Some(b"RisingEdge") {
                return Ok(Line::Ignored);
            }
            Fact::LedgerSnapshot { renamed: true }
        }
        Message::Acknowledged => {
            strings(fields, key::TX_IDS)?;
            Fact::TransactionsAcknowledged
        }
        Message::GeneratorSummary => {
            generator_summary(fields)?;
            Fact::GeneratorSummary
        }
        _ => unreachable!("the frequent messages are decoded before"),
    };
    Ok(Line::Event(Event { at_ns, fact }))
}

fn resources(fields: Fields<'_>) -> Body<Resources> {
    Ok(Resources {
        cpu_centiseconds: fields.unsigned(key::CENTI_CPU)?,
        gc_centiseconds: fields.unsigned(key::CENTI_GC)?,
        mutator_centiseconds: fields.unsigned(key::CENTI_MUT)?,
        major_collections: fields.unsigned(key::GCS_MAJOR)?,
        minor_collections: fields.unsigned(key::GCS_MINOR)?,
        allocated_bytes: fields.unsigned(key::ALLOC)?,
        live_bytes: fields.unsigned(key::LIVE)?,
        heap_bytes: fields.unsigned_or(key::HEAP, 0)?,
        rss_bytes: fields.unsigned(key::RSS)?,
        block_io_centiseconds: fields.unsigned(key::CENTI_BLK_IO)?,
        net_read_bytes: fields.unsigned_or(key::NET_RD, 0)?,
        net_written_bytes: fields.unsigned_or(key::NET_WR, 0)?,
        file_read_bytes: fields.unsigned_or(key::FS_RD, 0)?,
        file_written_bytes: fields.unsigned_or(key::FS_WR, 0)?,
        threads: fields.unsigned(key::THREADS)?,
    })
}

/// The block before; none before the first one.
fn parent(fields: Fields<'_>) -> Body<Option<Hash>> {
    let reported = string(fields.text(), fields.get(key::BLOCK_PREV));
    if reported
        .as_deref()
        .is_some_and(|reported| reported.len() != 64 && reported.to_ascii_lowercase().starts_with(b"genesis"))
    {
        return Ok(None);
    }
    fields.hash(key::BLOCK_PREV).map(Some)
}

/// A number, or in the oldest nodes an object around it.
fn block_number(fields: Fields<'_>) -> Body<u64> {
    let reported = fields.get(key::BLOCK_NO);
    let number = match reported.lead(fields.text()) {
        b'{' => fields.scanner.member(reported, key::UN_BLOCK_NO),
        _ => reported,
    };
    fields.unsigned_value("blockNo", number)
}

/// The announced block; none if it is no announcement.
fn announced(fields: Fields<'_>) -> Body<Option<Hash>> {
    let skipped = fields.is_false(key::RISING_EDGE)?
        || fields.is_false(key::BLOCKING_READ)?
        || fields.get(key::ROLL_BACK_TO).present();
    if skipped {
        return Ok(None);
    }
    let key = if fields.get(key::ADD_BLOCK).present() { key::ADD_BLOCK } else { key::BLOCK };
    fields.leading_hash(key).map(Some)
}

fn strings(fields: Fields<'_>, key: Key) -> Body<()> {
    let list = fields.get(key);
    let all =
        list.lead(fields.text()) == b'[' && fields.scanner.items(list).all(|item| item.lead(fields.text()) == b'"');
    if all { Ok(()) } else { Err(Problem::Body { key: key.name, wanted: "a list of strings" }) }
}

fn generator_summary(fields: Fields<'_>) -> Body<()> {
    let summary = fields.get(key::SUMMARY);
    let member = |key| fields.scanner.member(summary, key);
    fields.unsigned_value("summary.ssTxSent", member(key::SS_TX_SENT))?;
    fields.unsigned_value("summary.ssFailures", member(key::SS_FAILURES))?;
    fields.double_value("summary.ssElapsed", member(key::SS_ELAPSED))?;
    if member(key::SS_THREADWISE_TPS).lead(fields.text()) == b'[' {
        Ok(())
    } else {
        Err(Problem::Body { key: "summary.ssThreadwiseTps", wanted: "a list" })
    }
}
