"""The files of cardano-rosetta-java's load tests: every row is used, and nothing is skipped without a report."""

from __future__ import annotations

import csv
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainmark.core.errors import UsageError
from chainmark.systems.mesh.csv_import import from_csv
from chainmark.systems.mesh.pinned import Corpus

NETWORK = {"blockchain": "cardano", "network": "mainnet"}
HEADER = "address,block_index,block_hash,transaction_size,relative_ttl,transaction_hash\n"

ROW_TEXT = st.text("ab,\"'é|", min_size=1, max_size=6)


def _rows(tmp_path: Path, *rows: str, header: str = HEADER) -> Path:
    path = tmp_path / "mainnet-data.csv"
    path.write_text(header + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


def _bodies(corpus: Corpus, endpoint: str) -> list[dict[str, Any]]:
    entry = corpus.endpoint(endpoint)
    assert entry is not None
    return [{**item.body} for item in entry.items]


def test_every_row_is_used(tmp_path: Path) -> None:
    """The incumbent sends its first row repeatedly, which measures a cache."""
    corpus = from_csv(_rows(tmp_path, "addr1,7,b7,296,1000,t7", "addr2,8,b8,300,1000,t8"), NETWORK)
    common = {"network_identifier": NETWORK}
    wanted = {
        "network_status": [{**common, "metadata": {}}],
        "account_balance": [{**common, "account_identifier": {"address": a}} for a in ("addr1", "addr2")],
        "account_coins": [
            {**common, "account_identifier": {"address": a}, "include_mempool": True} for a in ("addr1", "addr2")
        ],
        "block": [{**common, "block_identifier": {"index": i, "hash": f"b{i}"}} for i in (7, 8)],
        "block_transaction": [
            {**common, "block_identifier": {"index": i, "hash": f"b{i}"}, "transaction_identifier": {"hash": f"t{i}"}}
            for i in (7, 8)
        ],
        "search_by_hash": [{**common, "transaction_identifier": {"hash": f"t{i}"}} for i in (7, 8)],
        "search_by_address": [{**common, "account_identifier": {"address": a}} for a in ("addr1", "addr2")],
        "construction_metadata": [
            {**common, "options": {"transaction_size": size, "relative_ttl": 1000}} for size in (296, 300)
        ],
    }
    assert {endpoint.id: _bodies(corpus, endpoint.id) for endpoint in corpus.endpoints} == wanted
    assert corpus.validated is False
    status = corpus.endpoint("network_status")
    assert status is not None
    assert (status.candidates, status.left_out) == (2, 1)


def test_each_file_of_a_folder_becomes_a_stratum(tmp_path: Path) -> None:
    for name in ("huge", "stake"):
        (tmp_path / f"{name}.csv").write_text(f"{HEADER}{name},7,b7,296,1000,t7\n", encoding="utf-8")
    corpus = from_csv(tmp_path, NETWORK)
    balance = corpus.endpoint("account_balance")
    assert balance is not None
    assert [item.stratum for item in balance.items] == ["huge", "stake"]


@pytest.mark.parametrize(
    ("header", "row", "what"),
    [
        (HEADER.replace("block_hash", "hash"), "a,7,b,1,1,t", "has no column `block_hash`"),
        (HEADER, "a,7,b,1,1", ":2 has no value for `transaction_hash`"),
        (HEADER, "a,,b,1,1,t", ":2 has no value for `block_index`"),
        (HEADER, "a,seven,b,1,1,t", ":2: `block_index` is `seven`, not a number"),
        (HEADER, "a,7,b,1,1,t,more", ":2 has more cells than the header"),
        ("", "", "has no column `address`"),
        (HEADER, "", "mainnet-data.csv contains no rows"),
    ],
)
def test_an_invalid_row_is_reported(tmp_path: Path, header: str, row: str, what: str) -> None:
    with pytest.raises(UsageError) as caught:
        from_csv(_rows(tmp_path, *([row] if row else []), header=header), NETWORK)
    assert what in caught.value.message


@given(st.lists(st.text('a7,"\r\n\0é ', max_size=12), max_size=4), st.booleans())
def test_any_text_is_read_or_refused_in_one_sentence(lines: list[str], headed: bool) -> None:
    text = (HEADER if headed else "") + "\n".join(lines)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        path.write_bytes(text.encode())
        try:
            corpus = from_csv(path, NETWORK)
        except UsageError:
            return
    assert all(endpoint.candidates == len(endpoint.items) + endpoint.left_out for endpoint in corpus.endpoints)


@given(st.lists(st.tuples(ROW_TEXT, st.integers(0, 10**12), ROW_TEXT), min_size=1, max_size=6))
def test_every_row_is_contained_in_the_corpus(rows: list[tuple[str, int, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            file.write(HEADER)
            csv.writer(file).writerows([address, index, "b", 1, 1, text] for address, index, text in rows)
        corpus = from_csv(path, NETWORK)
    transactions = {
        (b["block_identifier"]["index"], b["transaction_identifier"]["hash"])
        for b in _bodies(corpus, "block_transaction")
    }
    assert transactions == {(index, text) for _, index, text in rows}


def test_a_network_must_be_known(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not state its network"):
        from_csv(_rows(tmp_path, "a,7,b,1,1,t"))
    with pytest.raises(UsageError, match="cannot be read"):
        from_csv(tmp_path / "absent.csv", NETWORK)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"neither dimensions\.json nor a CSV file"):
        from_csv(tmp_path / "empty", NETWORK)


def _dimension(data_type: str, endpoints: list[str], levels: dict[str, str]) -> dict[str, Any]:
    thresholds = {level: {"min": 1, "max": 9, "display": text} for level, text in levels.items()}
    return {"description": f"D {data_type}", "unit": "u", "endpoints": endpoints, "type": "power_of_10"} | {
        "data_type": data_type,
        "thresholds": thresholds,
    }


@pytest.fixture
def dimensions(tmp_path: Path) -> Path:
    content = {
        "network": "mainnet",
        "dimensions": {
            "tx_history": _dimension("addresses", ["/search/transactions"], {"1": "1-9 txs", "10": "10-99 txs"}),
            "tx_has_script": _dimension(
                "transactions", ["/block/transaction", "/search/transactions"], {"true": "with", "false": "without"}
            ),
            "block_era": _dimension("blocks", ["/block"], {"byron": "Byron (epochs 0-3)"}),
        },
    }
    (tmp_path / "dimensions.json").write_text(json.dumps(content), encoding="utf-8")
    files = {
        "addresses/tx_history_1.csv": "address\naddr1\naddr2\n",
        "transactions/tx_has_script_true.csv": "transaction_hash,block_hash,block_index\nt1,b1,1\n",
        "transactions/tx_has_script_false.csv": "transaction_hash,block_hash,block_index\nt2,b2,2\n",
        "blocks/block_era_byron.csv": "block_index,block_hash\n3,b3\n",
        "blocks/block_era_odd.csv": "block_index,block_hash\n4,b4\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_dimensions_become_strata(dimensions: Path) -> None:
    corpus = from_csv(dimensions)
    assert corpus.network == NETWORK
    strata = {
        endpoint.id: {stratum.name: stratum.description for stratum in endpoint.strata} for endpoint in corpus.endpoints
    }
    scripts = {"tx_has_script/true": "D transactions: with", "tx_has_script/false": "D transactions: without"}
    assert strata == {
        "search_by_address": {"tx_history/1": "D addresses: 1-9 txs"},
        "search_by_hash": scripts,
        "block_transaction": scripts,
        "block": {"block_era/byron": "D blocks: Byron (epochs 0-3)"},
    }
    assert corpus.order["levels_without_file"] == ["tx_history/10"]
    assert corpus.order["files_of_no_level"] == ["blocks/block_era_odd.csv"]


def test_a_search_requests_the_values_of_its_rows(dimensions: Path) -> None:
    """The incumbent sends an empty hash for every address, and the file of the scripts for both levels."""
    corpus = from_csv(dimensions)
    addresses = [body["account_identifier"] for body in _bodies(corpus, "search_by_address")]
    assert addresses == [{"address": "addr1"}, {"address": "addr2"}]
    endpoint = corpus.endpoint("search_by_hash")
    assert endpoint is not None
    hashes = {item.stratum: item.body["transaction_identifier"]["hash"] for item in endpoint.items}
    assert hashes == {"tx_has_script/true": "t1", "tx_has_script/false": "t2"}


def test_dimensions_of_another_network_are_refused(dimensions: Path) -> None:
    with pytest.raises(UsageError, match="is for the network `mainnet`, not `preprod`"):
        from_csv(dimensions, {"blockchain": "cardano", "network": "preprod"})


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('["/block"]', '["/account/coins"]', "`block_era` uses /account/coins with blocks"),
        ('"blocks"', '"bricks"', "`block_era` has the data type `bricks`"),
        ('"network": "mainnet", ', "", "network: Field required"),
        ("}", "", "is not valid JSON"),
    ],
)
def test_implausible_dimensions_are_refused(dimensions: Path, old: str, new: str, what: str) -> None:
    path = dimensions / "dimensions.json"
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        from_csv(dimensions)
    assert what in caught.value.message
