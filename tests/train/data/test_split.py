"""Which split a row goes to."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from macaron.train.data.recipe import Split, SplitSection
from macaron.train.data.split import fixed_splits, group_of, split_of
from tests.train.data.making import sft

SHARES = SplitSection(dev=0.1, test=0.2)


def test_shares_of_the_groups_are_about_those_wanted() -> None:
    counts = Counter(split_of(f"group {number}", SHARES) for number in range(5000))
    assert abs(counts["test"] - 1000) < 120
    assert abs(counts["dev"] - 500) < 90


def test_no_shares_hold_nothing_out() -> None:
    assert {split_of(f"group {number}", SplitSection(dev=0, test=0)) for number in range(500)} == {"train"}


@given(st.text(max_size=30), st.floats(0, 0.4), st.floats(0, 0.4))
def test_a_greater_share_of_test_never_takes_a_group_out_of_test(group: str, small: float, more: float) -> None:
    if split_of(group, SplitSection(dev=0.1, test=small)) == "test":
        assert split_of(group, SplitSection(dev=0.1, test=small + more)) == "test"


def test_a_row_without_a_group_is_of_its_sources_group() -> None:
    assert group_of(sft("1", source="bfcl")) == group_of(sft("2", source="elsewhere", group="bfcl")) == "bfcl"


SPLIT: st.SearchStrategy[Split] = st.sampled_from(["train", "dev", "test"])


@given(st.lists(st.tuples(st.sampled_from("abc"), SPLIT)))
def test_a_group_that_several_claim_is_held_out(claims: list[tuple[str, Split]]) -> None:
    fixed = fixed_splits(claims)
    for group in {group for group, _ in claims}:
        claimed = {split for name, split in claims if name == group}
        assert fixed[group] == next(split for split in ("test", "dev", "train") if split in claimed)
