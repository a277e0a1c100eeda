"""The pages about flags and metrics name what there is: no flag is left out, and every alert watches a metric."""

import re

from tools.reference import ALERTS, flags_page, metrics_page

from kubesched.cli.flags import FLAGS
from kubesched.cli.run import run
from kubesched.telemetry.series import BY_NAME, NOT_HERE


def test_every_flag_is_on_the_page_once() -> None:
    told = re.findall(r"^\| `--([a-z0-9-]+)", flags_page(), re.MULTILINE)
    ours = {option.opts[-1].removeprefix("--") for option in run.params}
    assert len(told) == len(set(told))
    assert set(told) == {flag.name for flag in FLAGS} | ours


def test_every_metric_is_on_the_page() -> None:
    told = set(re.findall(r"^\| `([a-z_]+)` \|", metrics_page(), re.MULTILINE))
    assert told == BY_NAME.keys() | NOT_HERE.keys()


def test_what_is_counted_is_not_said_to_be_missing() -> None:
    assert BY_NAME.keys() & NOT_HERE.keys() == set()


def test_alerts_watch_metrics_and_labels_that_there_are() -> None:
    for expression, _ in ALERTS:
        [name] = re.findall(r"\b(?:scheduler|kubesched|leader)_[a-z_]+", expression)
        series = BY_NAME[name.removesuffix("_bucket")]
        assert set(re.findall(r"(\w+)=\"", expression)) <= set(series.labels)
        assert name == series.name or series.kind == "histogram"
