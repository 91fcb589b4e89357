//! A block's timeline, by every rule for every order of events; the rules differ only in the forge loop.

mod common;

use chainmark_trace::block_timelines::{BlockCounts, BlockTimelines};
use chainmark_trace::event::{Event, Fact, Hash, Peer, Place};
use common::{Row, Value, fresh_path, hash, read};
use proptest::prelude::*;

/// The events come one nanosecond after the other, from 1 on, on lines of the same number in file 3.
fn fold_by(facts: &[Fact<'_>], published: bool) -> (Vec<Row>, BlockCounts) {
    let mut timelines = BlockTimelines::new(published);
    for (place, fact) in (1..).zip(facts) {
        timelines.listen(&Event { at_ns: place as i64, fact: *fact }, Place { file: 3, line: place });
    }
    let path = fresh_path();
    timelines.write(&path).unwrap();
    (read(&path), timelines.summary())
}

/// The only timeline in the events, the same by both rules.
fn timeline(facts: &[Fact<'_>]) -> Row {
    let (mut rows, _) = fold_by(facts, false);
    assert_eq!(fold_by(facts, true).0, rows);
    assert_eq!(rows.len(), 1);
    rows.remove(0)
}

fn integer(row: &Row, name: &str) -> Option<i64> {
    match row[name] {
        Value::Integer(number) => Some(number),
        _ => None,
    }
}

fn text<'a>(row: &'a Row, name: &str) -> Option<&'a str> {
    match &row[name] {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

const BLOCK: Hash = Hash([0xab; 32]);

fn noticed() -> Fact<'static> {
    Fact::Noticed { slot: 40, block_no: 2, block: BLOCK, peer: Peer { local: Some("1:1"), remote: Some("2:2") } }
}

fn forged() -> Fact<'static> {
    Fact::Forged { slot: 40, block_no: 2, block: BLOCK, parent: Some(hash(7)) }
}

fn forged_elsewhere() -> Fact<'static> {
    Fact::Forged { slot: 41, block_no: 2, block: BLOCK, parent: Some(hash(7)) }
}

fn requested(length: u64) -> Fact<'static> {
    Fact::Requested { head: BLOCK, length, peer: Peer { local: None, remote: Some("10.0.0.2:3001") } }
}

fn fetched(remote: &'static str) -> Fact<'static> {
    Fact::Fetched { block: BLOCK, size_bytes: Some(900), peer: Peer { local: None, remote: Some(remote) } }
}

fn added(delta: u64) -> Fact<'static> {
    Fact::Added { block: BLOCK, delta }
}

const ANNOUNCED: Fact<'static> = Fact::Announced { block: BLOCK };
const SENT: Fact<'static> = Fact::Sent { block: BLOCK };
const SELF_ADOPTED: Fact<'static> = Fact::SelfAdopted { slot: None, block: BLOCK, size_bytes: 88_000 };
const SWITCHED: Fact<'static> = Fact::Switched { block: BLOCK, delta: 2 };

#[test]
fn an_observer_has_the_first_event_of_each_stage() {
    let mut facts = vec![noticed(), requested(1), fetched("3:3"), added(1), ANNOUNCED, SENT, SWITCHED];
    facts.extend([noticed(), requested(9), fetched("4:4"), added(9), ANNOUNCED, SENT, SWITCHED, SELF_ADOPTED]);
    let row = timeline(&facts);
    let stages = ["noticed", "requested", "fetched", "adopted", "announced", "sent", "switched"];
    for (place, stage) in (1..).zip(stages) {
        assert_eq!(integer(&row, &format!("{stage}_ns")), Some(place));
        assert_eq!(integer(&row, &format!("{stage}_file")), Some(3));
        assert_eq!(integer(&row, &format!("{stage}_line")), Some(place));
    }
    for name in ["forged_ns", "forged_file", "forged_line", "size_bytes", "started_ns", "parent", "error"] {
        assert_eq!(row[name], Value::Null, "{name}");
    }
    assert_eq!(text(&row, "role"), Some("observer"));
    assert_eq!(text(&row, "block"), Some("ab".repeat(32).as_str()));
    assert_eq!((integer(&row, "slot"), integer(&row, "block_no")), (Some(40), Some(2)));
    assert_eq!((integer(&row, "request_length"), integer(&row, "adopted_delta")), (Some(1), Some(1)));
    assert_eq!(integer(&row, "switched_delta"), Some(2));
    assert_eq!((text(&row, "noticed_from"), text(&row, "fetched_from")), (Some("2:2"), Some("3:3")));
}

#[test]
fn a_forger_has_the_size_of_its_own_message_and_the_first_adoption() {
    let row = timeline(&[forged(), added(3), SELF_ADOPTED, noticed(), fetched("3:3")]);
    assert_eq!(text(&row, "role"), Some("forger"));
    assert_eq!((integer(&row, "forged_ns"), integer(&row, "adopted_ns")), (Some(1), Some(2)));
    assert_eq!((integer(&row, "adopted_delta"), integer(&row, "size_bytes")), (Some(3), Some(88_000)));
    assert_eq!(text(&row, "parent"), Some("07".repeat(32).as_str()));
    for name in ["noticed_ns", "noticed_from", "fetched_ns", "fetched_from", "requested_ns"] {
        assert_eq!(row[name], Value::Null, "{name}");
    }
    let row = timeline(&[forged(), SELF_ADOPTED, added(3)]);
    assert_eq!((integer(&row, "adopted_ns"), integer(&row, "adopted_delta")), (Some(2), Some(1)));
}

#[test]
fn the_parent_of_the_first_block_has_the_name_used_by_the_node() {
    let row = timeline(&[Fact::Forged { slot: 0, block_no: 0, block: BLOCK, parent: None }]);
    assert_eq!(text(&row, "parent"), Some("GenesisHash"));
    assert_eq!(integer(&row, "block_no"), Some(0));
}

#[test]
fn an_impossible_timeline_is_in_error_and_accepts_no_more_events() {
    let cases: [(&str, &[Fact<'_>]); 9] = [
        ("request of an unknown block", &[requested(1)]),
        ("fetch of an unknown block", &[fetched("3:3")]),
        ("adoption of an unknown block", &[added(1)]),
        ("adoption of an unknown block", &[SELF_ADOPTED]),
        ("announcement of an unknown block", &[ANNOUNCED]),
        ("sending of an unknown block", &[SENT]),
        ("forged twice", &[forged(), forged_elsewhere()]),
        ("forged after it was noticed", &[noticed(), forged()]),
        ("request by the forger", &[forged(), requested(1)]),
    ];
    for (error, facts) in cases {
        let later =
            [noticed(), requested(1), fetched("3:3"), forged(), added(1), ANNOUNCED, SENT, SELF_ADOPTED, SWITCHED];
        let all: Vec<Fact<'_>> = facts.iter().chain(&later).cloned().collect();
        let row = timeline(&all);
        assert_eq!((text(&row, "role"), text(&row, "error")), (Some("error"), Some(error)));
        for stage in ["requested", "fetched", "adopted", "announced", "sent", "switched"] {
            assert_eq!(row[&format!("{stage}_ns")], Value::Null, "{stage} after {error}");
        }
        let (_, summary) = fold_by(&all, false);
        assert_eq!((summary.entries, summary.errors, summary.forged), (1, 1, 0));
        assert_eq!(summary.errors_by.into_iter().collect::<Vec<_>>(), [(error, 1)]);
    }
}

#[test]
fn a_change_of_the_chain_is_never_an_error() {
    let (rows, summary) = fold_by(&[SWITCHED, SWITCHED], false);
    assert_eq!((rows.len(), summary.switched_unknown, summary.errors), (0, 2, 0));
    let (_, summary) = fold_by(&[SWITCHED, noticed(), SWITCHED, SWITCHED], false);
    assert_eq!((summary.switched_unknown, summary.switched_adoptions), (1, 1));
}

#[test]
fn timelines_are_sorted_by_number_then_hash_with_unnumbered_ones_last() {
    let noticed = |block_no, block| Fact::Noticed { slot: 1, block_no, block: hash(block), peer: Peer::default() };
    let facts = [Fact::Sent { block: hash(1) }, noticed(5, 9), noticed(4, 8), noticed(5, 7), noticed(10, 2)];
    let order: Vec<String> =
        fold_by(&facts, false).0.iter().map(|row| text(row, "block").unwrap()[..2].into()).collect();
    assert_eq!(order, ["08", "07", "09", "02", "01"]);
}

fn round(slot: u64, leads: bool) -> Vec<Fact<'static>> {
    vec![
        Fact::LoopStart { slot, utxo_entries: 0, density: 0.0 },
        Fact::BlockContext { slot, block_no: 1, tip: None },
        Fact::LedgerState { slot },
        Fact::LedgerView { slot },
        Fact::Leadership { slot, leads },
        Fact::Ticked { slot, prev: None },
        Fact::MempoolSnapshot { slot },
    ]
}

const LOOP: [&str; 7] = [
    "started_ns",
    "block_context_ns",
    "ledger_state_ns",
    "ledger_view_ns",
    "leadership_ns",
    "ticked_ns",
    "snapshot_ns",
];

#[test]
fn a_forged_block_has_the_last_stages_of_its_slot() {
    let mut facts = round(40, true);
    facts.extend(round(40, true));
    facts.push(forged());
    facts.extend(round(40, true));
    let row = timeline(&facts);
    let times: Vec<Option<i64>> = LOOP.iter().map(|name| integer(&row, name)).collect();
    assert_eq!(times, (8..15).map(Some).collect::<Vec<_>>());
}

#[test]
fn a_missing_stage_of_the_forging_slot_is_null_or_stale_by_the_published_rules() {
    let mut facts = round(39, true);
    facts.extend(round(40, false).into_iter().take(5));
    facts.push(forged());
    let times = |published| {
        let (rows, _) = fold_by(&facts, published);
        LOOP.map(|name| integer(&rows[0], name))
    };
    // Without leading there is no leadership time; the last two stages were not reported in the slot.
    assert_eq!(times(false), [Some(8), Some(9), Some(10), Some(11), None, None, None]);
    assert_eq!(times(true), [Some(8), Some(9), Some(10), Some(11), Some(5), Some(6), Some(7)]);
}

/// Role; times of request, fetch, adoption and sending; size.
type Outcome = (&'static str, [Option<i64>; 4], Option<i64>);

/// What one block's events make of it, one rule after the other as they are written.
fn slow(facts: &[Fact<'_>]) -> Option<Outcome> {
    let mut role = None;
    let [mut requested, mut fetched, mut adopted, mut sent] = [None; 4];
    let mut size = None;
    for (at, fact) in (1..).zip(facts) {
        role = match (role, fact) {
            (Some("error"), _) => Some("error"),
            (role, Fact::Switched { .. }) => role,
            (None, Fact::Noticed { .. }) => Some("observer"),
            (None, Fact::Forged { .. }) => Some("forger"),
            // All forges here are the same.
            (Some("forger"), Fact::Forged { .. }) => Some("forger"),
            (None, _) | (Some(_), Fact::Forged { .. }) | (Some("forger"), Fact::Requested { .. }) => Some("error"),
            (role, _) => role,
        };
        match (role, fact) {
            (Some("observer"), Fact::Requested { .. }) => requested = requested.or(Some(at)),
            (Some("observer"), Fact::Fetched { .. }) => fetched = fetched.or(Some(at)),
            (Some("observer" | "forger"), Fact::Added { .. } | Fact::SelfAdopted { .. }) => {
                adopted = adopted.or(Some(at))
            }
            (Some("observer" | "forger"), Fact::Sent { .. }) => sent = sent.or(Some(at)),
            _ => {}
        }
        if let (Some("forger"), Fact::SelfAdopted { size_bytes, .. }) = (role, fact) {
            size = size.or(Some(*size_bytes as i64));
        }
    }
    role.map(|role| (role, [requested, fetched, adopted, sent], size))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_events_matches_the_naive_fold(choices in prop::collection::vec(0..14usize, 1..12)) {
        let facts: Vec<Fact<'_>> = choices
            .into_iter()
            .map(|choice| match choice {
                0..=2 => noticed(),
                3 => forged(),
                4 | 5 => requested(1),
                6 | 7 => fetched("3:3"),
                8 | 9 => added(1),
                10 => SELF_ADOPTED,
                11 => SENT,
                12 => SWITCHED,
                _ => Fact::Ticked { slot: 3, prev: None },
            })
            .filter(|fact| !matches!(fact, Fact::Ticked { .. }))
            .collect();
        let (rows, _) = fold_by(&facts, false);
        let Some((role, times, size)) = slow(&facts) else {
            prop_assert!(rows.is_empty());
            return Ok(());
        };
        prop_assert_eq!(text(&rows[0], "role"), Some(role));
        let stages = ["requested_ns", "fetched_ns", "adopted_ns", "sent_ns"];
        prop_assert_eq!(stages.map(|name| integer(&rows[0], name)), times);
        prop_assert_eq!(integer(&rows[0], "size_bytes"), size);
    }
}

#[test]
fn the_request_that_was_answered_is_stored_with_the_size() {
    let requested =
        |remote| Fact::Requested { head: BLOCK, length: 1, peer: Peer { local: None, remote: Some(remote) } };
    let row = timeline(&[
        noticed(),
        requested("a:1"),
        requested("b:1"),
        requested("b:1"),
        fetched("b:1"),
        requested("c:1"),
        fetched("c:1"),
    ]);
    assert_eq!((integer(&row, "requested_ns"), integer(&row, "answered_request_ns")), (Some(2), Some(3)));
    assert_eq!((text(&row, "fetched_from"), integer(&row, "fetched_bytes")), (Some("b:1"), Some(900)));
    // It came from a peer without any reported request.
    let row = timeline(&[noticed(), requested("a:1"), fetched("z:1")]);
    assert_eq!((integer(&row, "requested_ns"), row["answered_request_ns"].clone()), (Some(2), Value::Null));
}

/// The timeline in the events in this line order, each with its own time, and the number of events used late.
fn displaced(facts: &[Fact<'_>], order: &[usize], published: bool) -> (Row, u64) {
    let mut timelines = BlockTimelines::new(published);
    for (place, &number) in (1..).zip(order) {
        timelines.listen(&Event { at_ns: number as i64 + 1, fact: facts[number] }, Place { file: 0, line: place });
    }
    let path = fresh_path();
    timelines.write(&path).unwrap();
    let mut row = read(&path).remove(0);
    row.retain(|name, _| !name.ends_with("_line"));
    (row, timelines.recovered())
}

proptest! {
    #[test]
    fn lines_in_the_wrong_order_give_the_same_timeline(
        order in Just((0..12).collect::<Vec<usize>>()).prop_shuffle(),
        is_forger: bool,
    ) {
        let observer =
            [noticed(), noticed(), requested(1), fetched("10.0.0.2:3001"), added(1), ANNOUNCED, SENT, SENT, noticed()];
        let mut facts = if is_forger {
            round(40, true).into_iter().chain([forged(), added(1), SELF_ADOPTED, SENT, ANNOUNCED]).collect()
        } else {
            observer.to_vec()
        };
        facts.truncate(12);
        let order: Vec<usize> = order.into_iter().filter(|&number| number < facts.len()).collect();
        let sorted: Vec<usize> = (0..facts.len()).collect();
        prop_assert_eq!(displaced(&facts, &order, false).0, displaced(&facts, &sorted, false).0);
    }
}

#[test]
fn a_late_header_recovers_earlier_events_except_by_the_published_rules() {
    let facts = [noticed(), requested(1), fetched("10.0.0.2:3001"), added(1)];
    let (row, recovered) = displaced(&facts, &[1, 2, 0, 3], false);
    assert_eq!((text(&row, "role"), integer(&row, "noticed_ns"), recovered), (Some("observer"), Some(1), 2));
    assert_eq!(integer(&row, "answered_request_ns"), Some(2));
    let (row, _) = displaced(&facts, &[1, 2, 0, 3], true);
    assert_eq!(text(&row, "error"), Some("request of an unknown block"));
    // A header with a later time contains nothing about the lost lines.
    let late = [requested(1), fetched("10.0.0.2:3001"), noticed(), added(1)];
    assert_eq!(text(&displaced(&late, &[0, 1, 2, 3], false).0, "error"), Some("request of an unknown block"));
}
