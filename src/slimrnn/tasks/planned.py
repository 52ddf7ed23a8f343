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


def _pixel_mnist() -> list[PaperRow]:
    """KRU §4.3, table 2; low-rank paper §3.0.3, table 1."""
    pixels = "task pixel-mnist"
    rows = []
    for net, plain, permuted in (
        ("lstm", 97.8, 91.3),
        ("uernn", 97.5, 93.3),
        ("furnn", 96.9, 94.1),
        ("kru", 95.6, 94.5),
    ):
        rows.append(_accuracy(f"pixel-mnist-{net}", "KRU §4.3", plain, pixels))
        rows.append(_accuracy(f"permuted-mnist-{net}", "KRU §4.3", permuted, pixels))
    for net, permuted in (
        ("gru-128", 92.8),
        ("lr-gru-128-24", 91.8),
        ("lr-gru-512-4", 91.3),
        ("lrd-gru-64-24", 91.9),
        ("lrd-gru-128-24", 93.5),
        ("lrd-gru-256-24", 94.7),
    ):
        rows.append(_accuracy(f"permuted-mnist-{net}", "low-rank §3.0.3", permuted, pixels))
    return rows


def _highway() -> list[PaperRow]:
    """Low-rank paper A.1."""
    needs = "task mnist and highway layers"
    return [
        _accuracy("highway-mnist-lr", "low-rank A.1", 98.83, needs),
        _accuracy("highway-mnist-lrd", "low-rank A.1", 98.64, needs),
    ]


def _penn_treebank() -> list[PaperRow]:
    """Low-rank paper table 2; KRU §4.4."""
    needs = "task penn-treebank"
    perplexities = {
        "gru-1000": 2.96,
        "gru-1000-dropout": 2.92,
        "gru-3298-dropout": 2.77,
        "lstm-1000-dropout": 2.92,
        "lrd-gru-1000-64": 2.92,
        "lrd-gru-tied-1000-64": 2.90,
        "lrd-gru-3298-128": 2.95,
        "lrd-gru-3298-128-dropout": 2.86,
        "lrd-gru-5459-64-dropout": 2.82,
        "lrd-gru-tied-5459-64-dropout": 2.81,
        "lrd-gru-tied-4480-128-dropout": 2.86,
        "lrd-gru-tied-6985-64-dropout": 2.76,
        "lrd-lstm-1740-300-dropout": 2.86,
    }
    rows = [
        PaperRow(
            f"ptb-{net}",
            "low-rank table 2",
            f"perplexity {perplexity:.2f} per character",
            needs=needs,
            score="perplexity",
            bound=perplexity,
        )
        for net, perplexity in perplexities.items()
    ]
    claim = "bits per character close to those of RNN and LSTM"
    return [*rows, PaperRow("ptb-kru", "KRU §4.4", claim, needs=needs, score="bits_per_character")]


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
    *_pixel_mnist(),
    *_highway(),
    *_penn_treebank(),
    *_speech(),
    *_video(),
    *_recommendation(),
)
