"""The schedule: what tests wait for comes first, a window bounds the rest, nothing comes twice."""

import asyncio
import threading

import pytest

from evaluators.runtime.schedule import Schedule


def take(schedule: Schedule, count: int) -> list[str | None]:
    async def several() -> list[str | None]:
        return [await asyncio.wait_for(schedule.take(), 5) for _ in range(count)]

    return asyncio.run(several())


@pytest.mark.parametrize(
    ("wanted", "taken"), [("", "abc"), ("cc", "cab"), ("some other test", "abc")]
)
def test_items_come_in_order_and_wanted_ones_first(wanted: str, taken: str) -> None:
    """Each once, a test's own before its turn; what is no planned item changes nothing."""
    schedule = Schedule(["a", "b", "c"], 10)
    for key in wanted if wanted == "cc" else [wanted]:
        schedule.want(key)
    assert take(schedule, 4) == [*taken, None]


def test_news_after_the_loop_has_ended_are_harmless() -> None:
    """Tests may end after the engine has; a late lead changes nothing in what is selected."""
    schedule = Schedule(["a", "b", "c"], 10, lead=0)
    schedule.select(["c", "a"])
    schedule.lead(0)
    assert take(schedule, 1) == ["c"]
    schedule.ended()
    schedule.want("b")
    schedule.close()
    assert take(schedule, 1) == [None]


def test_demand_is_met_beyond_the_window() -> None:
    """A window that is used up holds back the look-ahead but never a waiting test."""
    schedule = Schedule(["a", "b", "c", "d"], 1)
    assert take(schedule, 1) == ["a"]
    schedule.want("d")
    assert take(schedule, 1) == ["d"]


def test_items_of_no_test_are_never_ahead() -> None:
    """What is judged beside the tests leaves the window to items whose tests will come."""
    schedule = Schedule(["x", "y", "z", "a", "b"], 1, untested=3)
    assert take(schedule, 4) == ["x", "y", "z", "a"]
    schedule.ended()
    assert take(schedule, 2) == ["b", None]


def test_the_window_moves_on_as_tests_end() -> None:
    """No more than the window lies between what is taken and what is tested."""
    schedule = Schedule(["a", "b", "c"], 1)

    async def scenario() -> list[str | None]:
        first = await schedule.take()
        second = asyncio.create_task(schedule.take())
        await asyncio.sleep(0.01)
        assert not second.done()
        threading.Thread(target=schedule.ended).start()
        return [first, await asyncio.wait_for(second, 5)]

    assert asyncio.run(scenario()) == ["a", "b"]


def test_few_items_are_under_way_until_one_is_done() -> None:
    """The first items show whether models can be asked; a waiting test changes nothing in that."""
    schedule = Schedule(["a", "b", "c", "d"], 10, first=2)

    async def scenario() -> list[str | None]:
        first = [await schedule.take(), await schedule.take()]
        others = [asyncio.create_task(schedule.take()) for _ in range(3)]
        schedule.want("d")
        await asyncio.sleep(0.01)
        assert not any(other.done() for other in others)
        schedule.done()
        return first + list(await asyncio.wait_for(asyncio.gather(*others), 5))

    assert asyncio.run(scenario()) == ["a", "b", "d", "c", None]


def test_closing_ends_every_waiting_worker() -> None:
    """After close nothing is handed out, and whoever waits is told so."""
    schedule = Schedule(["a", "b"], 0)

    async def scenario() -> list[str | None]:
        waiting = [asyncio.create_task(schedule.take()) for _ in range(3)]
        await asyncio.sleep(0.01)
        threading.Thread(target=schedule.close).start()
        return [await asyncio.wait_for(one, 5) for one in waiting]

    assert asyncio.run(scenario()) == [None, None, None]


def test_one_room_lets_one_worker_in() -> None:
    """A test that ends gives one of the waiting workers an item; the others go on waiting."""
    schedule = Schedule(["a", "b", "c"], 0)

    async def scenario() -> list[bool]:
        waiting = [asyncio.create_task(schedule.take()) for _ in range(3)]
        await asyncio.sleep(0.01)
        threading.Thread(target=schedule.ended).start()
        await asyncio.wait_for(waiting[0], 5)
        done = [one.done() for one in waiting]
        schedule.close()
        await asyncio.gather(*waiting)
        return done

    assert asyncio.run(scenario()) == [True, False, False]


def test_the_last_item_ends_the_waiting() -> None:
    """Workers that wait for a turn hear that the last item was taken by another."""
    schedule = Schedule(["a"], 0)

    async def scenario() -> list[str | None]:
        waiting = [asyncio.create_task(schedule.take()) for _ in range(3)]
        await asyncio.sleep(0.01)
        schedule.want("a")
        return [await asyncio.wait_for(one, 5) for one in waiting]

    assert asyncio.run(scenario()) == ["a", None, None]


def test_a_lead_comes_before_the_selection_and_no_further() -> None:
    """Until it is known which items have a test only so many are handed out, then those alone."""
    schedule = Schedule(["a", "b", "c", "d"], 10, lead=0)

    async def scenario() -> list[str | None]:
        waiting = asyncio.create_task(schedule.take())
        await asyncio.sleep(0)
        assert not waiting.done()
        schedule.lead(2)
        first = [await asyncio.wait_for(waiting, 5), await asyncio.wait_for(schedule.take(), 5)]
        third = asyncio.create_task(schedule.take())
        await asyncio.sleep(0.01)
        assert not third.done()
        schedule.select(["d", "b"])
        rest = [await asyncio.wait_for(third, 5), await asyncio.wait_for(schedule.take(), 5)]
        return [*first, *rest]

    assert asyncio.run(scenario()) == ["a", "b", "d", None]


def test_demand_beyond_the_window_holds_no_demand_up() -> None:
    """However many wanted items are out, who waits for work is woken for the next wanted one."""
    schedule = Schedule(["a", "b", "c", "d", "e"], 1)

    async def scenario() -> str | None:
        assert await schedule.take() == "a"
        for key in ("b", "c", "d"):
            schedule.want(key)
            assert await asyncio.wait_for(schedule.take(), 5) == key
        waiting = asyncio.create_task(schedule.take())
        await asyncio.sleep(0.01)
        schedule.want("e")
        return await asyncio.wait_for(waiting, 5)

    assert asyncio.run(scenario()) == "e"
