"""Every task, by name."""

from __future__ import annotations

from slimrnn._checks import suggestion
from slimrnn._texts import shown
from slimrnn.errors import ConfigError
from slimrnn.tasks.adding import AddingTask
from slimrnn.tasks.copy import CopyTask
from slimrnn.tasks.dates import DatesTask
from slimrnn.tasks.mnist_highway import MnistHighwayTask
from slimrnn.tasks.own import ClassifyTask, ForecastTask, RegressTask, TagTask
from slimrnn.tasks.pixel_mnist import PixelMnistTask
from slimrnn.tasks.ptb_chars import PTBCharsTask
from slimrnn.tasks.recommend import RecommendTask
from slimrnn.tasks.reverse import ReverseTask
from slimrnn.tasks.sort_digits import SortDigitsTask
from slimrnn.tasks.timit_frames import TimitFramesTask
from slimrnn.tasks.word_copy import WordCopyTask
from slimrnn.tasks.youtube8m import YouTube8MTask
from slimrnn.training.importing import imported
from slimrnn.training.task import Task

TASKS: dict[str, type[Task]] = {
    task.name: task
    for task in (
        CopyTask,
        WordCopyTask,
        AddingTask,
        PixelMnistTask,
        MnistHighwayTask,
        PTBCharsTask,
        TimitFramesTask,
        YouTube8MTask,
        RecommendTask,
        ReverseTask,
        SortDigitsTask,
        DatesTask,
        ClassifyTask,
        TagTask,
        RegressTask,
        ForecastTask,
    )
}

OWN_DATA = (
    "; for your own data: classify, tag, regress or forecast --file TABLE, ptb-chars --file TEXT (characters), "
    "recommend --file LOG (events of users), or a task of your own, module:Class"
)


def find_task(name: str) -> type[Task]:
    """The task of that name; "module:Class" is one of your own, in a module that can be imported."""
    if isinstance(name, str) and ":" in name:
        return _own(name)
    if not isinstance(name, str) or name not in TASKS:
        hint = suggestion(name, TASKS) or (OWN_DATA if isinstance(name, str) else "")
        raise ConfigError(f"expected a task of {', '.join(TASKS)}, got {shown(name)}{hint}")
    return TASKS[name]


def _own(name: str) -> type[Task]:
    found = imported(name, "a task")
    if not isinstance(found, type) or not issubclass(found, Task):
        raise ConfigError(f"expected a class derived from slimrnn.training.Task, got {name!r}")
    missing = [*sorted(found.__abstractmethods__), *(n for n in ("name", "every_step") if not hasattr(found, n))]
    if missing:
        raise ConfigError(f"expected a task that defines {', '.join(missing)}, got {name!r}, which does not")
    return found
