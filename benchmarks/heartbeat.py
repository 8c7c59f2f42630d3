"""Simulate cold starts with and without the heartbeat: `python -m benchmarks.heartbeat`.

Assumed of Lambda, which documents neither: an idle environment goes after 10 minutes, any after
one and a half to two and a half hours. Requests arrive at random, 60 % gets, 30 % lists and 10 %
creations; a cold start takes 0.5 s, an answer 20 ms.
"""

import random
from dataclasses import dataclass

_SHARES = (0.6, 0.3, 0.1)
_IDLE, _COLD, _WARM = 600.0, 0.5, 0.02  # seconds
_LIFE = (5400.0, 9000.0)
_BEAT = 300.0  # template.yaml: rate(5 minutes)
_RATES = {
    "10 an hour": 1 / 360,
    "1 a minute": 1 / 60,
    "0.1 a second": 0.1,
    "1 a second": 1.0,
}
_REQUESTS = 40_000


@dataclass
class _Environment:
    ends: float
    free: float
    """When its last answer was sent."""


def cold_starts(rate: float, *, heartbeat: bool, chooser: random.Random) -> float:
    """Return the share of clients' requests that meet a cold start.

    Args:
        rate: Requests a second of all operations.
        heartbeat: Whether each function is also called every 5 minutes.
        chooser: The source of randomness.
    """
    cold = 0
    for share in _SHARES:
        moment, asked = 0.0, []
        for _ in range(int(_REQUESTS * share)):
            moment += chooser.expovariate(rate * share)
            asked.append((moment, True))
        if heartbeat:
            asked += [(beat * _BEAT, False) for beat in range(int(moment / _BEAT))]
        environments: list[_Environment] = []
        for now, is_client in sorted(asked):
            environments = [
                each
                for each in environments
                if now - each.free < _IDLE and now < each.ends
            ]
            free = [each for each in environments if each.free <= now]
            if free:
                max(free, key=lambda each: each.free).free = now + _WARM
            else:
                ends = now + chooser.uniform(*_LIFE)
                environments.append(_Environment(ends, now + _COLD))
                cold += is_client
    return cold / sum(int(_REQUESTS * share) for share in _SHARES)


if __name__ == "__main__":
    for name, rate in _RATES.items():
        shares = [
            cold_starts(rate, heartbeat=beats, chooser=random.Random(1))  # noqa: S311 - repeatable
            for beats in (False, True)
        ]
        print(f"| {name} | {shares[0]:.1%} | {shares[1]:.1%} |")
