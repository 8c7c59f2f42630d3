"""`python -m tools seed`: fills a store with made-up animals through the API.

A run that was interrupted is continued by the same command: every creation has an Idempotency-Key made of the seed and
the animal's number, so the animals that are there already are recognized (for 24 hours).
"""

import asyncio
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tools.admin import sample_data

if TYPE_CHECKING:
    from tools.admin.api_client import Target

BaseUrlOption = Annotated[
    str | None,
    typer.Option(envvar="BASE_URL", help="The service, ending in /v1; without it, the running `make run`."),
]
KeyFileOption = Annotated[
    Path | None,
    typer.Option(exists=True, dir_okay=False, help="File with the API key; without it, $API_KEY or the local key."),
]


@dataclass
class Summary:
    """What a run has done so far.

    Args:
        latencies_s: Of the answers, in seconds.
        outcomes: Counts of `added` and `already there`.
        statuses: Counts of the animals' statuses.
        repetitions: Requests that were sent again after a failure.
    """

    latencies_s: list[float] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    repetitions: int = 0

    def text(self, count: int, seconds: float) -> str:
        """Put it into words.

        Args:
            count: How many animals were asked for.
            seconds: How long it took.
        """
        done, added = self.outcomes.total(), self.outcomes["added"]
        lines = [
            f"{done} of {count} animals: {added} added, {done - added} already there",
            f"{seconds:.1f} s, {done / max(seconds, 1e-9):.0f} animals/s, {self.repetitions} requests repeated",
        ]
        if done > 1:
            cuts = statistics.quantiles(self.latencies_s, n=20, method="inclusive")
            lines.append(f"latency p50 {cuts[9] * 1000:.0f} ms, p95 {cuts[18] * 1000:.0f} ms")
        if done:
            lines.append(", ".join(f"{count} {status}" for status, count in self.statuses.most_common()))
        return "\n".join(lines)


def seed(
    *,
    count: Annotated[int, typer.Option(min=1, help="How many animals.")] = 100,
    seed: Annotated[int, typer.Option(help="Which animals: the same number makes the same ones.")] = 1,
    concurrency: Annotated[int, typer.Option(min=1, max=256, help="Requests at a time.")] = 8,
    base_url: BaseUrlOption = None,
    api_key_file: KeyFileOption = None,
) -> None:
    """Add made-up animals; run it again to continue after an interruption."""
    # Late: the HTTP library takes a tenth of a second that the other commands have no use for.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from tools.admin.api_client import ApiError, find_target

    summary, begin, failure = Summary(), time.monotonic(), ""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    try:
        target = find_target(base_url, api_key_file)
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task("adding animals", total=count)
            advance = partial(progress.advance, task)
            asyncio.run(add_animals(target, seed, count, concurrency=concurrency, summary=summary, advance=advance))
    except ApiError as error:
        failure = str(error)
    except KeyboardInterrupt:
        failure = "Interrupted."
    if summary.outcomes:
        print(summary.text(count, time.monotonic() - begin))
    if failure:
        print(failure, file=sys.stderr)
        if summary.outcomes:
            print("The same command continues where this one ended.", file=sys.stderr)
        raise typer.Exit(1)


async def add_animals(  # noqa: PLR0913 - what a run needs to know
    target: "Target", seed: int, count: int, *, concurrency: int, summary: Summary, advance: Callable[[], object]
) -> None:
    """Add animals with several workers.

    Args:
        target: The service.
        seed: Which animals.
        count: How many.
        concurrency: How many requests at a time.
        summary: Kept up to date, so that it is true whenever the run ends.
        advance: Called after each animal.

    Raises:
        ApiError: The service refuses, or cannot answer; the other workers stop as well.
    """
    from tools.admin.api_client import connect

    indices = iter(range(count))
    async with connect(target, concurrency) as client:

        async def work() -> None:
            for index in indices:  # shared: each worker takes the next one
                pet = sample_data.animal(seed, index)
                answer = await client.create(pet, sample_data.idempotency_key(seed, index))
                summary.latencies_s.append(answer.seconds)
                summary.outcomes["already there" if answer.headers.get("Idempotency-Replayed") else "added"] += 1
                summary.statuses[pet.get("status", "without a status")] += 1
                summary.repetitions = client.repetitions
                advance()

        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(min(concurrency, count)):
                    workers.create_task(work())
        except ExceptionGroup as failures:  # they fail for the same reason, each by itself
            raise failures.exceptions[0] from None
