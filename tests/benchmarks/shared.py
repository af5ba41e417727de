"""Machines that share a ledger in PostgreSQL and a quota: limits, repeats, kills, costs.

Run as ``python -m tests.benchmarks.shared [--quick]``. Four process groups stand for machines. Each
works through all items in an order of its own. Prints

1. rate: calls at a shared limit of 50 a second: repeats, the most within any second, and the time
   as a multiple of the ideal;
2. kills: the same while random groups are killed with SIGKILL and started again: what was asked
   again although its reply had arrived a quarter of a second before the kill, and what is missing;
3. ledger: calls without any limit to a model that answers at once: how many a second the database
   keeps, its own processor time a call and that of the runs, and the bytes of a call;
4. quota: reports of runs to one quota, as many a second as there can be.

The server writes to the disk as it does by default. Exit code 1 where a promise is broken.
"""

import argparse
import json
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise

from evaluators.ledger import Ledger
from evaluators.ledger.quota_store import QuotaStore
from evaluators.ledger_place import PostgresUrl
from evaluators.runtime.quota_messages import Need, Report
from evaluators.runtime.quota_state import QuotaState
from tests.support.machines import Fleet, Work, count, serving
from tests.support.places import ask
from tests.support.postgres import Cluster, running
from tests.support.quotas import most_within

MACHINES = 4
RATE = 50
DELAY = 0.2


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def rate(cluster: Cluster, calls: int) -> bool:
    """Let all machines make so many calls at the limit; return whether the promises held."""
    with serving(DELAY) as (server, traffic):
        place = cluster.new_database()
        work = Work(ledger=place, url=server.url, items=calls // 2, rpm=RATE * 60)
        done = Fleet([replace(work, name=name) for name in range(MACHINES)]).results()
    times = traffic.times
    seconds = times[-1] - times[0] + DELAY
    ideal = calls / RATE
    most = most_within(1.0, [at for one in done for at in one.started])
    wrong = sum(one.wrong for one in done)
    say(
        f"rate: {len(times):,} calls in {seconds:.1f} s, {seconds / ideal:.3f} x the ideal "
        f"({RATE} a second); most within a second: {most} let go ({most / RATE - 1:+.1%}), "
        f"{most_within(1.0, times)} read by the server; repeats: {traffic.repeats}; wrong: "
        f"{wrong}; calls of each: {sorted(one.requests for one in done)}"
    )
    held = not (traffic.repeats or wrong) and len(times) == calls
    return held and most <= 1.05 * RATE and seconds <= 1.1 * ideal


def kills(cluster: Cluster, number: int, chance: random.Random) -> bool:
    """Kill random machines so often, then let all end; return whether nothing was lost."""
    items = 60 + 120 * number
    kept = [0]
    with serving(DELAY) as (server, traffic):
        place = cluster.new_database()
        work = Work(ledger=place, url=server.url, items=items, rpm=RATE * 60)
        fleet = Fleet([replace(work, name=name) for name in range(MACHINES)])
        while len(traffic.kills) < number and fleet.kill(traffic, chance):
            kept.append(count(place))
        done = fleet.results()
    falls = sum(later < earlier for earlier, later in pairwise(kept))
    lost = 2 * items - count(place)
    wrong = sum(one.wrong for one in done)
    late = [f"{lag:.2f}" for lag in traffic.lags if lag > traffic.settled]
    say(
        f"kills: {len(traffic.kills)} groups killed over {len(traffic.times):,} requests for "
        f"{2 * items:,} calls; in flight and asked again: {traffic.repeats - traffic.paid_twice}; "
        f"paid twice beyond that: {traffic.paid_twice} ({', '.join(late)}); lost: {lost}; "
        f"wrong: {wrong}; progress went back {falls} times; read by the server within a second: "
        f"{most_within(1.0, traffic.times)} of {RATE} at most"
    )
    return not (traffic.paid_twice or lost or wrong or falls) and len(traffic.kills) == number


def ledger(cluster: Cluster, calls: int) -> bool:
    """Let all machines keep calls that cost no time; say what the database and the runs take."""
    url = cluster.new_database()
    Ledger(PostgresUrl(url)).close()
    before = cluster.cpu_seconds()
    items = calls // 2 // MACHINES
    work = Work(ledger=url, items=items, quota="", concurrency=128)
    parts = [replace(work, name=name, first=1 + name * items) for name in range(MACHINES)]
    done = Fleet(parts).results()
    seconds = max(one.ended for one in done) - min(one.begun for one in done)
    calls = sum(one.requests for one in done)
    own = cluster.cpu_seconds() - before
    runs = sum(one.cpu for one in done)
    size = int(str(ask(PostgresUrl(url), "SELECT pg_database_size(current_database())")))
    say(
        f"ledger: {calls:,} calls in {seconds:.1f} s, {calls / seconds:,.0f} a second beside the "
        f"runs; {1000 * own / calls:.2f} ms of the server's processors a call, so that two bear "
        f"{2 * calls / own:,.0f} a second; {1000 * runs / calls:.2f} ms of the runs' own; "
        f"{size / calls:,.0f} bytes a call"
    )
    return calls == 2 * items * MACHINES


def quota(cluster: Cluster, seconds: float, runs: int) -> bool:
    """Report for so many runs as often as it goes."""
    place = PostgresUrl(cluster.new_database())
    Ledger(place).close()
    need = Need(most=3000.0, wanted=60.0)
    rooms = {"--concurrency": Need(most=64, wanted=64, kept=16)}
    end = time.monotonic() + seconds
    before = cluster.cpu_seconds()

    def report(name: int) -> int:
        store, done = QuotaStore(place, "q"), 0
        said = Report(run=str(name), rates={"--rpm": need, "rpm of m": need}, calls=rooms)

        def work(kept: object, now: float) -> tuple[dict[str, object], None]:
            state = QuotaState.of_json(json.loads(json.dumps(kept)))
            state.report(said, now)
            return state.as_json(), None

        while time.monotonic() < end:
            store.change(work, last=False)
            done += 1
        store.close()
        return done

    with ThreadPoolExecutor(runs) as threads:
        reports = sum(threads.map(report, range(runs)))
    own = (cluster.cpu_seconds() - before) / reports
    say(
        f"quota: {reports / seconds:,.0f} reports a second of {runs} runs at once; "
        f"{1000 * own:.2f} ms of the server's processors each"
    )
    return reports > 0


def main() -> int:
    """Print the figures and return the exit code."""
    parser = argparse.ArgumentParser(description="Machines that share one ledger and one quota.")
    parser.add_argument("--quick", action="store_true", help="a twentieth of it")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=("rate", "kills", "ledger", "quota"))
    options = parser.parse_args()
    share = 20 if options.quick else 1
    with running({}) as cluster:
        parts = {
            "rate": lambda: rate(cluster, 20_000 // share),
            "kills": lambda: kills(
                cluster, max(4, options.kills // share), random.Random(options.seed)
            ),
            "ledger": lambda: ledger(cluster, 80_000 // share),
            "quota": lambda: quota(cluster, 60 / share, 16),
        }
        chosen = [options.only] if options.only else list(parts)
        held = [parts[name]() for name in chosen]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
