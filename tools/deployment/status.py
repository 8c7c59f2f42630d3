"""Say what a stage runs and how it is, as `make status` prints it."""

import time
from collections.abc import Iterator
from operator import attrgetter

from animal_store_client.errors import printable

from tools.deployment import release
from tools.deployment.stage import Stage, StageName
from tools.key_table import CHECK_HASH, KeyTable


def status(stage: StageName) -> None:
    """Say what a stage runs, what ran before, the alarms that ring and the keys that expire."""
    stage.announce()
    stage.deployed()
    for line in [*_releases(stage), *_alarms(stage), *_keys(stage)]:
        print(line)


def _releases(stage: Stage) -> Iterator[str]:
    runs, since = release.released(stage), stage.outputs().get("Deployed")
    passed = release.stored(stage, "passed")
    verdict = "has passed its check" if runs in passed else "has not passed a check"
    yield f"{stage.stack} is {stage.status()}"
    yield f"runs {runs} since {since}; it {verdict}"
    others = [name for name in passed if name != runs]
    if others:
        commit, at = others[-1].partition("-")[0], passed[others[-1]]
        yield f"ran {others[-1]}, which passed its check on {at:%Y-%m-%d %H:%M}:"
        yield f"  make rollback STAGE={stage.name} COMMIT={commit}"


def _alarms(stage: Stage) -> Iterator[str]:
    """Name the alarms that are not OK or tell nobody, and a heartbeat's whatever it is."""
    names = stage.resources("Alarm")
    paginator = stage.client("cloudwatch").get_paginator("describe_alarms")
    pages = paginator.paginate(
        AlarmNames=[*names.values()], AlarmTypes=["MetricAlarm", "CompositeAlarm"]
    )
    found = pages.search("[MetricAlarms, CompositeAlarms][]")
    alarms = {each["AlarmName"]: each for each in found}
    for logical_id, name in names.items():
        if name not in alarms:
            yield f"{logical_id} was deleted"
            continue
        alarm = alarms[name]
        muted = "" if alarm["ActionsEnabled"] else " (muted)"
        if alarm["StateValue"] != "OK" or muted or "Heartbeat" in logical_id:
            since = alarm["StateUpdatedTimestamp"]
            state = f"{alarm['StateValue']}{muted} since {since:%Y-%m-%d %H:%M}"
            yield f"{logical_id} is {state}: {alarm['StateReason']}"
    yield f"of {len(names)} alarms, the others are OK"


def _keys(stage: Stage) -> Iterator[str]:
    """Name the keys that expire first."""
    table = KeyTable(stage.client("dynamodb"), stage.outputs()["ApiKeysTableName"])
    clients = [key for key in table.all() if not key.hash.startswith(CHECK_HASH)]
    valid = [key for key in clients if key.state == "active" and key.expires]
    for key in sorted(valid, key=attrgetter("expires"))[:3]:
        day = time.strftime("%Y-%m-%d", time.gmtime(key.expires))
        yield f"API key {key.id} ({printable(key.label)}) expires on {day}"
