"""A trained run compressed to several budgets: the table of docs/compress.md, cell by cell.

    python benchmarks/compression.py RUN OUT --updates 2000

Every cell is a small JSON file in OUT, and every fine-tuning a run there, so that the script may be stopped and started
again at any time. Without --only all cells are filled, the quick ones first; `python results/compression_tables.py OUT`
prints the table.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from slimrnn.compression.budget import Budget
from slimrnn.compression.choosing import choose_by_score
from slimrnn.compression.plan import Plan, cost_of
from slimrnn.tasks import load_run, run_config
from slimrnn.tasks.compressed_runs import compressed_config, fine_tuning_config, plan_of_run, score_of_run, write_start
from slimrnn.training.config import Config
from slimrnn.training.evaluation import EvaluationBatches, final_sizes, measure
from slimrnn.training.record import Run
from slimrnn.training.run import resume, train

BUDGETS = (0.2, 0.1, 0.5, 0.05)
PLAIN = ("tied-low-rank", "dense")
Cell = Callable[[], dict[str, Any]]


class Table:
    """The cells of one run. `kind` is "weighted" or "plain": how the approximation was chosen."""

    def __init__(self, run: Path, out: Path, updates: int, budgets: tuple[float, ...]) -> None:
        self.run, self.out, self.updates, self.budgets = run, out, updates, budgets
        self.model, self.config = load_run(run)

    @cache  # noqa: B019 -- there is one table
    def plan(self, kind: str) -> Plan:
        weighted = kind == "weighted"
        return plan_of_run(self.model, self.config, weighted=weighted, structures=None if weighted else PLAIN)

    @cache  # noqa: B019
    def small(self, kind: str, share: float) -> nn.Module:
        score = score_of_run(self.config) if kind == "weighted" else None
        return choose_by_score(self.plan(kind), Budget(share, is_share=True), score).model.eval()

    def cells(self) -> Iterator[tuple[str, Cell]]:
        """In the order in which they are filled."""
        yield "dense", partial(self.scored, self.model)
        for kind in ("weighted", "plain"):
            for share in self.budgets:
                yield f"after-{kind}-{share}", partial(self.after, kind, share)
        yield "times", self.times
        for share in self.budgets:
            yield f"distilled-weighted-{share}", partial(self.tuned, "weighted", share)
            yield f"distilled-plain-{share}", partial(self.tuned, "plain", share)
            yield f"scratch-{share}", partial(self.scratch, share)

    def after(self, kind: str, share: float) -> dict[str, Any]:
        """Right after the compression."""
        return self.scored(self.small(kind, share))

    def scored(self, model: nn.Module) -> dict[str, Any]:
        scores = {}
        for split, size in final_sizes(self.config).items():
            scores[split] = measure(model, self.config.task, EvaluationBatches(self.config, split, size))
        return {"scores": scores, **self.described(model)}

    def described(self, model: nn.Module) -> dict[str, Any]:
        texts = compressed_config(self.config, model)
        return {
            "structure": texts.structure,
            "input_structure": texts.input_structure,
            "parameters": cost_of(model, "parameters"),
            "share": cost_of(model, "parameters") / cost_of(self.model, "parameters"),
        }

    def tuned(self, kind: str, share: float) -> dict[str, Any]:
        """Fine-tuned by distillation from the dense net."""
        directory, small = self.out / f"run-{kind}-{share}", self.small(kind, share)
        config = fine_tuning_config(self.config, small, share, self.updates, self.run.absolute())
        start = write_start(self.out / f"start-{kind}-{share}.safetensors", small)
        return self.trained(replace(config, start_from=start.absolute(), out=directory), small)

    def scratch(self, share: float) -> dict[str, Any]:
        """The same structure and updates, from random weights, on the targets, as the dense net was trained."""
        small, directory = self.small("weighted", share), self.out / f"run-scratch-{share}"
        config = fine_tuning_config(self.config, small, share, self.updates, self.run.absolute(), distil=False)
        optim = replace(self.config.optim, schedule="cosine")
        return self.trained(replace(config, optim=optim, out=directory), small)

    def trained(self, config: Config, small: nn.Module) -> dict[str, Any]:
        config = replace(config, eval_every=max(1, self.updates // 4))  # on all of the validation and test set
        assert config.out is not None
        if (config.out / "run.json").exists():
            result = resume(config.out, run_config(Run(config.out)))
        else:
            result = train(config, f"benchmarks/compression.py {self.run} {self.out} --updates {self.updates}")
        if result.ended != "finished":
            raise KeyboardInterrupt
        about = {"updates": result.updates, "best_update": result.best_update, "rate": config.optim.lr}
        return {"scores": result.best, **about, **self.described(small)}

    def times(self) -> dict[str, Any]:
        """Milliseconds per sequence of 100 steps on one thread, the best of 20, all nets in turn; and torch's."""
        torch.set_num_threads(1)
        nets: dict[str, Any] = {"dense": self.model} | {str(s): self.small("weighted", s) for s in self.budgets}
        stacks = {name: net.rnn for name, net in nets.items()}
        with contextlib.suppress(ValueError):  # torch has no such layer
            stacks["torch"] = stacks["dense"].to_torch()
        found: dict[str, dict[str, float]] = {}
        for batch in (1, 32):
            x = torch.randn(100, batch, stacks["dense"].input_size)
            best = dict.fromkeys(stacks, float("inf"))
            with torch.no_grad():
                for _ in range(20):
                    for name, stack in stacks.items():
                        begin = time.perf_counter()
                        stack(x)
                        best[name] = min(best[name], time.perf_counter() - begin)
            found[f"batch {batch}"] = {name: round(1000 * seconds, 3) for name, seconds in best.items()}
        return {"milliseconds": found}


def fill(table: Table, only: str) -> None:
    table.out.mkdir(parents=True, exist_ok=True)
    for name, cell in table.cells():
        path = table.out / f"{name}.json"
        if path.exists() or only not in name:
            continue
        begin = time.time()
        values = cell() | {"seconds": 0.0}
        values["seconds"] = round(time.time() - begin, 1)
        path.write_text(json.dumps(values, indent=1))
        print(f"{name}: {values['seconds']} s {json.dumps(values.get('scores', values))[:200]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="directory of a run with a dense net")
    parser.add_argument("out", type=Path, help="directory for the cells")
    parser.add_argument("--updates", type=int, default=2000, help="of fine-tuning and of training from scratch")
    parser.add_argument("--budgets", type=float, nargs="+", default=BUDGETS)
    parser.add_argument("--only", default="", help="cells whose names contain this text")
    options = parser.parse_args()
    fill(Table(options.run, options.out, options.updates, tuple(options.budgets)), options.only)


if __name__ == "__main__":
    main()
