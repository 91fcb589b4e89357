"""`chainmark predict` and `chainmark explain` as a user runs them, with the model of a registered system."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from chainmark.core.errors import ExitCode, UsageError
from chainmark.systems.cardano.model.results import Explanation, ModelRecord, Prediction

from tests.results import result_in
from tests.unit.cli.commands import chainmark
from tests.unit.systems.cardano import made_up

PROFILE = "cardano/value"
FEW = ("--blocks", "64")


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A separate store for each test, set like `--store` does."""
    monkeypatch.setenv("CHAINMARK_STORE", str(tmp_path / "store"))
    return tmp_path / "store"


def predicted(*arguments: str) -> Prediction:
    """The prediction printed to stdout."""
    result = chainmark("predict", PROFILE, *FEW, "--json", *arguments)
    assert result.exit_code == ExitCode.DONE
    return result_in(result.stdout, Prediction)


@pytest.fixture(scope="module")
def figures() -> dict[str, float]:
    """The figures that the model itself measures on a known network."""
    return made_up.measured(made_up.profile().scenario(made_up.SEED))


@pytest.fixture
def report(tmp_path: Path, figures: dict[str, float]) -> Path:
    """A published report that the model reproduces."""
    return made_up.write(tmp_path / "release-10.6.2.json", made_up.report({"10.5.4": figures, "10.6.2": figures}))


def test_what_ifs_are_scenarios_in_the_given_order() -> None:
    prediction = predicted("--stage", "ticking=2x", "--rtt", "-10%", "--no-pipelining", "--block-size=2x", "--rtt=+20%")
    labels = [scenario.label for scenario in prediction.scenarios]
    assert labels[:-2] == ["base", "stage ticking=2x", "rtt -10%", "no-pipelining", "block-size 2x", "rtt +20%"]
    # Two values of `--rtt` exclude each other, so each is combined with the other options.
    for printed_changes, rtt in zip(
        (scenario.changes for scenario in prediction.scenarios[-2:]), ("-10%", "+20%"), strict=True
    ):
        assert printed_changes == ["stage ticking=2x", f"rtt {rtt}", "no-pipelining", "block-size 2x"]


def test_values_of_one_option_are_a_sweep_and_never_compounded() -> None:
    """-10 % and +10 % were combined to −1 %, which nobody had requested."""
    labels = [scenario.label for scenario in predicted("--rtt", "-10%", "--rtt", "+10%", "--rtt", "+10%").scenarios]
    assert labels == ["base", "rtt -10%", "rtt +10%"]
    different = [
        scenario.label for scenario in predicted("--rtt", "EU-AP=x2", "--rtt", "EU-US=x2", "--together").scenarios
    ]
    assert different == ["base", "rtt EU-AP=x2 and rtt EU-US=x2"]
    many = [part for option in ("rtt", "fetch") for n in range(1, 7) for part in (f"--{option}", f"+{n}%")]
    with pytest.raises(UsageError, match="combine to 36 networks"):
        chainmark("predict", PROFILE, *FEW, *many)


def test_together_makes_one_scenario_of_all_changes() -> None:
    prediction = predicted("--rtt", "+20%", "--no-pipelining", "--together")
    assert [scenario.changes for scenario in prediction.scenarios] == [[], ["rtt +20%", "no-pipelining"]]


def test_seed_and_blocks_are_passed_on() -> None:
    prediction = predicted("--seed", "7")
    assert prediction.seed == 7
    assert prediction.scenarios[0].blocks == 64
    assert predicted("--set", "network.hosts=104").scenarios[0].hosts == 104


def test_every_rendering_is_written_and_reproducible(tmp_path: Path) -> None:
    names = {"--html": "p.html", "--pdf": "p.pdf", "--md": "p.md", "--json-file": "p.json"}
    renderings = []
    for threads in ("1", "2"):
        folder = tmp_path / threads
        targets = [part for option, name in names.items() for part in (option, str(folder / name))]
        result = chainmark("predict", PROFILE, *FEW, "--rtt", "+20%", "--threads", threads, "--json", *targets)
        renderings.append({name: (folder / name).read_bytes() for name in names.values()})
        assert json.loads(result.stdout) == json.loads(renderings[-1]["p.json"])
        assert str(folder / "p.html") in result.stderr
    assert renderings[0] == renderings[1]
    assert renderings[0]["p.pdf"].startswith(b"%PDF")
    assert b"<!doctype html>" in renderings[0]["p.html"]


def test_the_terminal_shows_the_effect_of_a_change() -> None:
    result = chainmark("predict", PROFILE, *FEW, "--rtt", "+20%")
    assert "seed 1" in result.stdout
    assert re.search(r"0\.50 adoption, (s|ms) +[\d.]+ ± [\d.]+ +[\d.]+ +± [\d.]+ +\+\d+\.\d ± <?0\.\d %", result.stdout)
    assert "simulating" in result.stderr


def test_a_report_can_be_predicted_from_any_of_its_columns(report: Path) -> None:
    result = chainmark("predict", str(report), *FEW, "--version", "10.5.4", "--json")
    assert "10.5.4" in result_in(result.stdout, Prediction).title
    result = chainmark("predict", str(report), *FEW, "--json")
    assert "10.6.2" in result_in(result.stdout, Prediction).title


def test_a_run_of_the_store_can_be_predicted_and_explained(own_store: Path, figures: dict[str, float]) -> None:
    run = made_up.sealed_run(own_store, figures)
    for reference in (run.run_id, run.run_id[:20], "version:10.6.2"):
        result = chainmark("predict", reference, *FEW, "--json")
        assert result_in(result.stdout, Prediction).source == run.run_id
    assert " PASS   The stages explain " in chainmark("explain", run.run_id, "--blocks", "320").stdout


def test_two_runs_are_rejected_as_a_source(own_store: Path, figures: dict[str, float]) -> None:
    made_up.sealed_run(own_store, figures)
    made_up.sealed_run(own_store, figures)
    with pytest.raises(UsageError, match=r"`10\.6\.2` matches 2 runs"):
        chainmark("predict", "10.6.2")


def test_an_explanation_that_adds_up_exits_with_0(report: Path) -> None:
    result = chainmark("explain", str(report), "--blocks", "640", "--json")
    assert result_in(result.stdout, Explanation).explained
    assert result.exit_code == ExitCode.DONE


def test_parts_that_do_not_add_up_exit_with_1(tmp_path: Path, figures: dict[str, float]) -> None:
    late = {name: value * (1.3 if name == "adoption_p100_s" else 1.0) for name, value in figures.items()}
    path = made_up.write(tmp_path / "late.json", made_up.report({"10.6.2": late}))
    result = chainmark("explain", str(path), "--blocks", "320", "--html", str(tmp_path / "e.html"))
    assert result.exit_code == ExitCode.FAIL
    assert " FAIL " in result.stdout
    assert '<p class="word">FAIL</p>' in (tmp_path / "e.html").read_text(encoding="utf-8")


def test_a_folder_of_reports_gives_a_model_record(report: Path, figures: dict[str, float]) -> None:
    made_up.write(report.with_name("release-10.4.1.json"), made_up.report({"10.4.1": figures}))
    made_up.write(report.with_name("package.json"), {"name": "something else"})
    result = chainmark("explain", str(report.parent), "--blocks", "64", "--json")
    assert result.exit_code == ExitCode.DONE
    record = result_in(result.stdout, ModelRecord)
    assert len(record.runs) == 3
    assert "not published reports: `package.json`" in result.stderr
    both = [str(report), str(report.with_name("release-10.4.1.json"))]
    named = chainmark("explain", *both, "--blocks", "64", "--json")
    assert len(result_in(named.stdout, ModelRecord).runs) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "nowhere"], "`nowhere` is not a report, profile or run: no run matches `nowhere`"),
        (["predict", "missing.json"], "there is no file `missing.json`"),
        (["predict", "."], "`.` is a folder"),
        (["predict", "cometbft/demo"], "chainmark cannot predict `cometbft`: it has no model of it"),
        (["predict", PROFILE, "--rtt", "banana"], "`rtt banana`: `banana` is not an amount"),
        (["predict", PROFILE, "--set", "banana=1"], "`banana` is not a key of a profile"),
        (["predict", "missing.json", "--set", "a=1"], "`--set` changes a profile, but `missing.json` is not a profile"),
        (["predict", PROFILE, "--version", "9"], "a profile has no version `9`"),
        (["explain", PROFILE], "is a profile"),
        (["explain", "a.json", "b.json"], "there is no file `a.json`"),
        (["explain", "a.json", "b.json", "--version", "9"], "`--version` applies to a single report"),
    ],
)
def test_a_mistake_is_reported_in_one_sentence(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as error:
        chainmark(*arguments)
    assert message in error.value.message
    assert error.value.hint
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_an_unknown_system_is_rejected(tmp_path: Path) -> None:
    path = made_up.write(tmp_path / "package.json", {"name": "something else"})
    with pytest.raises(UsageError, match="is not a published report in a known format") as error:
        chainmark("predict", str(path))
    assert "`cardano`" in str(error.value.hint)
    with pytest.raises(UsageError, match="no published report in"):
        chainmark("explain", str(tmp_path))
