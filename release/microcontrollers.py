"""Exported C on emulated microcontrollers, see mcu_nets.py: with the installed wheel."""

from __future__ import annotations

from collections.abc import Iterator

from installs import fresh_python
from runs import Setting, clean_environment, run
from wheels import PROJECT


def check_microcontrollers(setting: Setting) -> Iterator[str]:
    """Nets in float32 and int8 on a Cortex-M0, M3, M4F and M7: the outputs of `rnn.step` over 500 steps."""
    python = fresh_python(setting)
    yield from run([python, PROJECT / "release/mcu_nets.py"], clean_environment(), setting.work).strip().splitlines()
