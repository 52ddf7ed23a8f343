"""Recurrent PPO on CartPole with hidden velocities: sb3-contrib's LSTM policy, and the same on slimrnn's layers.

    python -m pip install -r examples/requirements.txt
    python examples/recurrent_ppo.py

The cart shows where it is, but not how fast it moves, so the policy needs a memory. In a batch of PPO an episode ends
somewhere in the middle of a sequence; there sb3-contrib calls torch's LSTM once for every step. `SlimPolicy` hands the
ends of episodes to the layer (`resets=`), which runs the whole sequence in one call. Both start from the same weights.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
import tyro
from gymnasium.spaces import Box
from matplotlib.figure import Figure
from sb3_contrib import RecurrentPPO
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from torch import Tensor

from slimrnn import LSTM, Structure
from slimrnn.plotting import COLORS, label_ends, save, styled

SHOWN = [0, 2]  # the place of the cart and the angle of the pole, not their velocities
States = tuple[Tensor, Tensor]
# Those of RL Baselines3 Zoo for this environment, which trains for 100,000 frames.
SETTINGS: dict[str, Any] = {
    "n_steps": 32,
    "batch_size": 256,
    "n_epochs": 20,
    "gae_lambda": 0.8,
    "gamma": 0.98,
    "learning_rate": lambda left: 0.001 * left,
    "clip_range": lambda left: 0.2 * left,
}


class HiddenVelocities(gymnasium.ObservationWrapper[Any, Any, Any]):
    """An environment that shows some of its observations."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        space = env.observation_space
        assert isinstance(space, Box)
        self.observation_space = Box(space.low[SHOWN], space.high[SHOWN])

    def observation(self, observation: Any) -> Any:
        return observation[SHOWN]


def make_env() -> gymnasium.Env[Any, Any]:
    return HiddenVelocities(gymnasium.make("CartPole-v1"))


class SlimPolicy(RecurrentActorCriticPolicy):
    """sb3-contrib's policy with its LSTMs replaced by ours: the same weights, or the nearest of a structure."""

    def __init__(self, *args: Any, structure: Structure | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        schedule = options["lr_schedule"] if "lr_schedule" in options else args[2]
        self.lstm_actor: Any = LSTM.from_torch(self.lstm_actor, structure=structure)
        if self.lstm_critic is not None:
            self.lstm_critic: Any = LSTM.from_torch(self.lstm_critic, structure=structure)
        make: Any = self.optimizer_class
        self.optimizer = make(self.parameters(), lr=schedule(1), **self.optimizer_kwargs)

    @staticmethod
    def _process_sequence(features: Tensor, lstm_states: States, episode_starts: Tensor, lstm: Any) -> Any:
        """Features (sequences · steps, width), as sb3-contrib has them, through one call of the layer."""
        sequences = lstm_states[0].shape[1]
        x = features.reshape(sequences, -1, lstm.input_size).transpose(0, 1)
        resets = episode_starts.reshape(sequences, -1).T.bool()
        if len(x) == 1:  # collecting experience: a step of every environment
            return lstm.step(x[0], lstm_states, reset=resets[0])
        output, last = lstm(x, lstm_states, resets=resets)
        return output.transpose(0, 1).flatten(0, 1), last


class Curve(BaseCallback):
    """Mean length of the latest episodes, which is the reward here, after every batch of experience."""

    def __init__(self) -> None:
        super().__init__()
        self.frames: list[int] = []
        self.rewards: list[float] = []

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        episodes = self.model.ep_info_buffer
        self.frames.append(self.num_timesteps)
        self.rewards.append(float(np.mean([e["r"] for e in episodes])) if episodes else float("nan"))


def learn(policy: type[RecurrentActorCriticPolicy], frames: int, units: int, seed: int) -> tuple[Curve, float]:
    """The learning curve and frames per second."""
    env = make_vec_env(make_env, n_envs=8, seed=seed)
    options = {"lstm_hidden_size": units}
    agent = RecurrentPPO(policy, env, seed=seed, device="cpu", policy_kwargs=options, **SETTINGS)
    curve, start = Curve(), time.perf_counter()
    agent.learn(frames, callback=curve)
    return curve, agent.num_timesteps / (time.perf_counter() - start)


def main(frames: int = 40_000, units: int = 128, seeds: int = 1, threads: int = 1, out: Path = Path("out")) -> None:
    """
    frames -- of all environments together
    units -- of the LSTMs of actor and critic
    """
    torch.set_num_threads(threads)
    policies = {"sb3-contrib": RecurrentActorCriticPolicy, "slimrnn": SlimPolicy}
    figure = Figure(figsize=(7, 4))
    axes, ends, rows = figure.add_subplot(xlabel="frames"), [], ["policy,seed,frames,reward"]
    for color, (name, policy) in zip(COLORS, policies.items(), strict=False):
        for seed in range(seeds):
            curve, speed = learn(policy, frames, units, seed)
            axes.plot(curve.frames, curve.rewards, color=color)
            rows += [f"{name},{seed},{at},{reward:.1f}" for at, reward in zip(curve.frames, curve.rewards, strict=True)]
            print(f"{name}, seed {seed}: {speed:,.0f} frames per second, reward {curve.rewards[-1]:.0f}")
        ends.append((f"{name}\n{speed:,.0f} frames/s", curve.rewards[-1], color))
    styled(axes, "CartPole with hidden velocities", "mean reward of the last 100 episodes")
    label_ends(axes, ends)
    save(figure, path := out / "recurrent_ppo.png")
    path.with_suffix(".csv").write_text("\n".join(rows) + "\n")
    print(f"figure: {path}")


if __name__ == "__main__":
    tyro.cli(main)
