"""What the papers report on tasks that slimrnn does not have yet."""

from __future__ import annotations

from slimrnn.training.paper import PaperRow


def _accuracy(name: str, paper: str, percent: float, needs: str) -> PaperRow:
    return PaperRow(
        name,
        paper,
        f"test accuracy {percent} %",
        needs=needs,
        score="accuracy",
        bound=round(percent / 100, 6),
        direction="at least",
    )


def _highway() -> list[PaperRow]:
    """Low-rank paper A.1."""
    needs = "task mnist and highway layers"
    return [
        _accuracy("highway-mnist-lr", "low-rank A.1", 98.83, needs),
        _accuracy("highway-mnist-lrd", "low-rank A.1", 98.64, needs),
    ]


def _speech() -> list[PaperRow]:
    """KRU §4.5: figures only."""
    claim = "better than an RNN and close to an LSTM in frame accuracy"
    return [PaperRow("timit-kru", "KRU §4.5", claim, needs="task timit", score="accuracy", direction="at least")]


def _video() -> list[PaperRow]:
    """Factorized paper §3.2, table 1."""
    hits = {"lstm": (0.645, 0.573), "factorized-small": (0.719, 0.604), "factorized-big": (0.809, 0.641)}
    return [
        PaperRow(
            f"youtube-8m-{net}",
            "factorized §3.2",
            f"Hit@1 {hit}, PERR {perr}",
            needs="task youtube-8m",
            score="hit_at_1",
            bound=hit,
            direction="at least",
        )
        for net, (hit, perr) in hits.items()
    ]


def _recommendation() -> list[PaperRow]:
    """Factorized paper §3.3, table 2."""
    precisions = {"gru": 0.117, "factorized": 0.122, "context-switching": 0.126}
    return [
        PaperRow(
            f"recommendation-{net}",
            "factorized §3.3",
            f"MAP@20 {precision}",
            needs="task recommendation",
            score="map_at_20",
            bound=precision,
            direction="at least",
        )
        for net, precision in precisions.items()
    ]


PLANNED: tuple[PaperRow, ...] = (
    *_highway(),
    *_speech(),
    *_video(),
    *_recommendation(),
)
