"""The sketch of frequent keys: its bounds hold for every stream, and its memory does not grow."""

from __future__ import annotations

from collections import Counter

from hypothesis import example, given
from hypothesis import strategies as st

from highwater.shards.sketch import COUNTERS, Sketch

# weights that sum up without rounding, nothing among them, and equal ones
WEIGHTS = st.sampled_from((0.0, 0.25, 0.5, 1.0, 1.0, 1.0, 7.0, 1_024.0))
STREAMS = st.lists(st.tuples(st.integers(0, 20).map(str), WEIGHTS), min_size=40, max_size=120) | st.lists(
    st.tuples(st.integers(0, 3).map(str), WEIGHTS), max_size=12
)
# the first one had the lowest count when the third took a counter, and not any more when the fourth does
RISEN = [("a", 1.0), ("b", 1.0), ("c", 1.0), ("a", 99.0), ("d", 1.0)]


def _counted(stream: list[tuple[str, float]], counters: int) -> tuple[Sketch, Counter[str]]:
    sketch, true = Sketch(counters=counters), Counter[str]()
    for key, weight in stream:
        sketch.add(key, weight)
        true[key] += weight  # type: ignore[assignment] # a counter counts fractions as well
    return sketch, true


@example(RISEN, 2)
@given(STREAMS, st.integers(1, 12))
def test_true_weight_is_within_the_bounds_and_the_error_within_a_share(
    stream: list[tuple[str, float]], counters: int
) -> None:
    sketch, true = _counted(stream, counters)
    assert sketch.total == sum(true.values())
    for key, weight in true.items():
        least, most = sketch.bounds(key)
        if most:
            assert least <= weight <= most, "a key is logged with units that it never had"
            assert most - least <= sketch.total / counters
        else:
            assert weight <= sketch.total / counters, "a hot key has no counter"


@given(STREAMS, st.integers(1, 12))
def test_keys_found_have_a_share_and_keys_with_two_are_found(stream: list[tuple[str, float]], counters: int) -> None:
    sketch, true = _counted(stream, counters)
    found, share = set(sketch.frequent()), sketch.total / counters
    assert all(true[key] >= share for key in found)
    assert {key for key, weight in true.items() if weight > 0 and weight >= 2 * share} <= found
    assert len(found) <= counters


@given(STREAMS, st.integers(1, 12))
def test_memory_is_bounded(stream: list[tuple[str, float]], counters: int) -> None:
    sketch, _ = _counted(stream, counters)
    assert max(map(len, (sketch._counts, sketch._errors, sketch._lowest))) <= counters
    assert set(sketch._errors) <= set(sketch._counts)


def test_one_key_in_fifty_is_found_among_a_hundred_thousand_others() -> None:
    sketch = Sketch()
    for number in range(100_000):
        sketch.add("hot" if number % 50 == 0 else str(number), 1.0)
    assert list(sketch.frequent()) == ["hot"]
    least, most = sketch.bounds("hot")
    assert least <= 2_000 <= most <= 2_000 + 100_000 / COUNTERS


def test_keys_of_equal_weight_are_not_found() -> None:
    sketch = Sketch()
    for number in range(10_000):
        sketch.add(str(number % 1_000), 1.0)
    assert list(sketch.frequent()) == []
