# Written by `make docs`.
from chainmark.api.bisecting import bisect as bisect
from chainmark.api.clusters import cluster_check as cluster_check
from chainmark.api.comparing import compare as compare
from chainmark.api.context import Cancellation as Cancellation
from chainmark.api.experimenting import aa as aa
from chainmark.api.experimenting import aa_of_history as aa_of_history
from chainmark.api.experimenting import experiment as experiment
from chainmark.api.following import block as block
from chainmark.api.following import host as host
from chainmark.api.following import request as request
from chainmark.api.following import transaction as transaction
from chainmark.api.history import annotate as annotate
from chainmark.api.history import history as history
from chainmark.api.history import note as note
from chainmark.api.history import notes as notes
from chainmark.api.history import pin as pin
from chainmark.api.history import unnote as unnote
from chainmark.api.learning import margins as margins
from chainmark.api.loading import LoadResult as LoadResult
from chainmark.api.loading import check_corpus as check_corpus
from chainmark.api.loading import corpus as corpus
from chainmark.api.loading import load as load
from chainmark.api.measure import attach as attach
from chainmark.api.measure import ingest as ingest
from chainmark.api.measure import run as run
from chainmark.api.modelling import explain as explain
from chainmark.api.modelling import fault_kinds as fault_kinds
from chainmark.api.modelling import predict as predict
from chainmark.api.modelling import synth as synth
from chainmark.api.planned_loads import load_plan as load_plan
from chainmark.api.publishing import publish as publish
from chainmark.api.qualifying import Experiment as Experiment
from chainmark.api.qualifying import qualify as qualify
from chainmark.api.qualifying import saturation as saturation
from chainmark.api.releasing import Signature as Signature
from chainmark.api.releasing import release as release
from chainmark.api.runs import Run as Run
from chainmark.api.runs import export_figures as export_figures
from chainmark.api.runs import figures as figures
from chainmark.api.runs import import_run as import_run
from chainmark.api.runs import import_samples as import_samples
from chainmark.api.runs import open_run as open_run
from chainmark.api.runs import open_runs as open_runs
from chainmark.api.runs import remove_run as remove_run
from chainmark.api.runs import remove_unfinished as remove_unfinished
from chainmark.api.runs import runs as runs
from chainmark.api.systems import catalogue as catalogue
from chainmark.api.systems import install as install
from chainmark.api.systems import installed as installed
from chainmark.api.systems import profiles as profiles
from chainmark.api.tailing import follow as follow
from chainmark.api.verifying import verify_against as verify_against
from chainmark.capacity.access import Access as Access
from chainmark.core.catalogue import Catalogue as Catalogue
from chainmark.core.errors import ChainmarkError as ChainmarkError
from chainmark.core.manifest import Manifest as Manifest
from chainmark.core.verdict import Verdict as Verdict
from chainmark.network.server_watch import ServerSources as ServerSources
from chainmark.report.document import Document as Document
from chainmark.serve.server import Dashboard as Dashboard
from chainmark.serve.server import serve as serve
from chainmark.store.runs import Store as Store

__all__ = [
    "Access",
    "Cancellation",
    "Catalogue",
    "ChainmarkError",
    "Dashboard",
    "Document",
    "Experiment",
    "LoadResult",
    "Manifest",
    "Run",
    "ServerSources",
    "Signature",
    "Store",
    "Verdict",
    "aa",
    "aa_of_history",
    "annotate",
    "attach",
    "bisect",
    "block",
    "catalogue",
    "check_corpus",
    "cluster_check",
    "compare",
    "corpus",
    "experiment",
    "explain",
    "export_figures",
    "fault_kinds",
    "figures",
    "follow",
    "history",
    "host",
    "import_run",
    "import_samples",
    "ingest",
    "install",
    "installed",
    "load",
    "load_plan",
    "margins",
    "note",
    "notes",
    "open_run",
    "open_runs",
    "pin",
    "predict",
    "profiles",
    "publish",
    "qualify",
    "release",
    "remove_run",
    "remove_unfinished",
    "request",
    "run",
    "runs",
    "saturation",
    "serve",
    "synth",
    "transaction",
    "unnote",
    "verify_against",
]
