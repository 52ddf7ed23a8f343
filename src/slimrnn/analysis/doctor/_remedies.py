"""What to do about a memory that is too short, or gradients that grow."""

from __future__ import annotations

import math

from slimrnn.analysis.doctor.layer_diagnosis import LayerDiagnosis

TO_CALM = (
    "clip gradients (clip_norm), and begin with smaller recurrent weights or a unitary structure, which keeps norms."
)
LOOK_AT_BIASES = "the matrix keeps norms, so look at the nonlinearity: begin with biases of 0, or lower their rate."
UNITARY = "a unitary structure (RNN with nonlinearity='modrelu' and Kronecker factors)"
BIAS = {"gru": "update_bias", "lstm": "forget_bias"}


def to_remember_longer(layer: LayerDiagnosis) -> str:
    """For a layer whose gradients vanish."""
    if layer.view.kind == "rnn":
        return f"use {UNITARY}, a GRU or LSTM with the bias of its gate spread over the units, leaky units, or a skip."
    if layer.view.kind == "other":
        return (
            f"spread time scales over the units (leak=Leaky(time_constants=(1, {max(layer.steps, 2)}))), begin with "
            f"gates that keep the state, or use {UNITARY}."
        )
    most = round(math.log(max(layer.steps, 3) - 1), 1)
    given = "" if layer.view.of_torch else f", {BIAS[layer.view.kind]}=(0, {most})"
    return (
        f"begin with {bias_of(layer)} spread over the units from 0 to ln({layer.steps} − 1) = {most}{given}: "
        f"some units then forget at once and some in {layer.steps} steps. The same high bias in all units keeps new "
        f"inputs out; where only one will do, try 3. Or use {UNITARY}."
    )


def bias_of(layer: LayerDiagnosis) -> str:
    """The option of ours that begins with open gates, or what it sets."""
    gate = BIAS[layer.view.kind]
    return f"the bias of the {gate.removesuffix('_bias')} gates" if layer.view.of_torch else gate
