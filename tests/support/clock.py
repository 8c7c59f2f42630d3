"""A clock for layer and SDK, so that unit tests need not wait."""


class Clock:
    """Replaces functions of `time`. It does not run by itself."""

    def __init__(self) -> None:
        self.wall, self.uptime = 1_800_000_000.0, 1_000.0
        self.pauses: list[float] = []

    def time(self) -> float:
        return self.wall

    def monotonic(self) -> float:
        return self.uptime

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self.wall += seconds
        self.uptime += seconds


CLOCK = Clock()
"""The clock of this process. Like a real one, it does not start again with each test."""
