"""Registering revisions: labels, owners, names and quotas."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from macaron.errors import BadRequest, Forbidden, NotFound
from macaron.registry.cards import Registry
from macaron.registry.desired import (
    Card,
    Conflict,
    Desired,
    Key,
    Quota,
    Registration,
    permit,
    register,
    remove_label,
    retire_idle,
    rollback,
    visible,
)
from tests.registry.desired.states import CARD, L2, L4, PROFILE, empty, live, own, registered, revision

WANTED = Registration("L4", revision(1), card=CARD)


def test_a_new_revision_is_a_candidate_with_its_facts() -> None:
    wanted = replace(WANTED, licence="MIT", run="law-1", created=7.0, bytes=5, note="first")
    item = register(empty(), wanted, PROFILE).find(L4).find(revision(1))
    assert (item.state, item.licence, item.run, item.created, item.bytes, item.note) == (
        "candidate", "MIT", "law-1", 7.0, 5, "first",
    )  # fmt: skip


@pytest.mark.parametrize("label", ["", "l4", "L4/../x", "L4@x", "L" * 33, "L4\n"])
def test_a_label_outside_the_form_is_refused(label: str) -> None:
    with pytest.raises(BadRequest, match="capital letter") as caught:
        register(empty(), replace(WANTED, label=label), PROFILE)
    assert caught.value.param == "label"


@pytest.mark.parametrize("wrong", ["sha256:12", "unverified:L4", revision(1).upper(), revision(1) + "0"])
def test_a_revision_that_is_no_whole_hash_is_refused(wrong: str) -> None:
    with pytest.raises(BadRequest, match="64 hexadecimal digits"):
        register(empty(), replace(WANTED, revision=wrong), PROFILE)


@pytest.mark.parametrize(
    ("card", "field"),
    [
        (replace(CARD, name=""), "name"),
        (replace(CARD, description="x" * 601), "description"),
        (replace(CARD, boundary="\x1b[2J"), "boundary"),
        (replace(CARD, identity=" "), "identity"),
        (replace(CARD, identity="a\0b"), "identity"),
    ],
)
def test_a_card_out_of_bounds_is_refused_by_field(card: Card, field: str) -> None:
    with pytest.raises(BadRequest) as caught:
        register(empty(), replace(WANTED, card=card), PROFILE)
    assert caught.value.param == field


def test_white_space_in_a_card_is_made_one_line() -> None:
    card = replace(CARD, description=" Contracts\n and  statutes. ")
    assert registered(empty(), L4, 1, card).find(L4).card == CARD


def test_a_new_label_needs_a_card() -> None:
    with pytest.raises(BadRequest, match="card is missing"):
        register(empty(), replace(WANTED, card=None), PROFILE)


def test_a_label_of_the_profile_keeps_its_card() -> None:
    assert registered(empty(), L2, 1, None).find(L2).find(revision(1)).card is None


def test_a_second_revision_takes_the_card_of_the_live_one() -> None:
    desired = registered(live(empty(), L4, 1), L4, 2, replace(CARD, name="Other"))
    assert registered(desired, L4, 3, None).find(L4).find(revision(3)).card == CARD


@pytest.mark.parametrize("tenant", ["", "acme"])
def test_a_label_of_the_profile_is_overridden_only_on_purpose(tenant: str) -> None:
    wanted = Registration("L2", revision(1), tenant)
    with pytest.raises(Conflict, match="taken by the profile") as caught:
        register(empty(), wanted, PROFILE)
    assert (caught.value.status, caught.value.code) == (409, "label_taken")
    assert register(empty(), replace(wanted, override=True), PROFILE).find(Key("L2", tenant)).profile


def test_a_label_of_everybodys_is_overridden_only_on_purpose() -> None:
    shared = registered(empty(), L4, 1)
    with pytest.raises(Conflict, match="everybody's registry"):
        register(shared, replace(WANTED, tenant="acme"), PROFILE)
    assert register(shared, replace(WANTED, tenant="acme", override=True), PROFILE).find(Key("L4", "acme"))


def test_a_label_of_another_tenant_is_free() -> None:
    desired = registered(registered(empty(), Key("L4", "acme"), 1), Key("L4", "other"), 2)
    assert registered(desired, L4, 3).find(L4).revisions[0].revision == revision(3)


def test_overriding_nothing_is_refused() -> None:
    with pytest.raises(BadRequest, match="nothing has the label L4"):
        register(empty(), replace(WANTED, override=True), PROFILE)


def test_the_same_revision_twice_is_refused() -> None:
    with pytest.raises(Conflict, match="already and is candidate"):
        registered(registered(empty(), L4, 1), L4, 1)


def test_the_profiles_own_revision_is_refused() -> None:
    launched = replace(own("L2", "L2"), revision=revision(1))
    profile = replace(PROFILE, specialists=(own("L0", "L0"), launched))
    with pytest.raises(Conflict, match="profile's own"):
        register(empty(), Registration("L2", revision(1), override=True), profile)


def test_a_retired_revision_begins_anew() -> None:
    desired = retire_idle(rollback(live(empty(), L4, 1), L4), ())
    assert desired.find(L4).find(revision(1)).state == "retired"
    again = registered(desired, L4, 1).find(L4).find(revision(1))
    assert (again.state, again.probed, again.route_check) == ("candidate", (), None)


def test_an_engine_name_never_gets_other_bytes() -> None:
    similar = revision(1)[:19] + "f" * 52
    with pytest.raises(Conflict, match="never changes its meaning"):
        register(registered(empty(), L4, 1), Registration("L4", similar, "acme", CARD, override=True), PROFILE)


def test_an_engine_name_stays_bound_after_removal() -> None:
    removed = remove_label(registered(empty(), L4, 1), L4, ())
    similar = replace(WANTED, revision=revision(1)[:19] + "f" * 52)
    with pytest.raises(Conflict, match="never changes its meaning"):
        register(removed, similar, PROFILE)
    assert register(removed, WANTED, PROFILE).find(L4)


def test_an_engine_name_that_the_engine_was_launched_with_is_refused() -> None:
    launched = Registry((own("L0", "L0"), own("L2", f"L4@{revision(1)[7:19]}")), "L0", "L2")
    with pytest.raises(Conflict, match="engine name"):
        register(empty(), WANTED, launched)


@pytest.mark.parametrize(
    ("quota", "field"),
    [(Quota(labels=1), "labels"), (Quota(all_labels=1), "all_labels"), (Quota(bytes=9), "bytes")],
)
def test_a_quota_stops_a_second_label(quota: Quota, field: str) -> None:
    first = register(empty(), replace(WANTED, bytes=5), PROFILE, quota)
    with pytest.raises(Conflict, match="the limit is") as caught:
        register(first, replace(WANTED, label="L5", bytes=5), PROFILE, quota)
    assert (caught.value.param, caught.value.code) == (field, "quota")


def test_one_tenants_labels_leave_anothers_quota_alone() -> None:
    quota = Quota(labels=1, bytes=9)
    first = register(empty(), replace(WANTED, tenant="acme", bytes=5), PROFILE, quota)
    assert register(first, replace(WANTED, tenant="other", bytes=5), PROFILE, quota).find(Key("L4", "other"))


def test_a_quota_stops_a_second_revision() -> None:
    with pytest.raises(Conflict, match="remove retired ones"):
        register(registered(empty(), L4, 1), replace(WANTED, revision=revision(2)), PROFILE, Quota(revisions=1))


def test_retired_revisions_do_not_count_in_bytes() -> None:
    quota = Quota(bytes=9)
    first = register(empty(), replace(WANTED, bytes=9), PROFILE, quota)
    with pytest.raises(Conflict):
        register(first, replace(WANTED, revision=revision(2), bytes=9), PROFILE, quota)
    retired = replace(first, entries=tuple(_retired(first)))
    assert register(retired, replace(WANTED, revision=revision(2), bytes=9), PROFILE, quota)


def _retired(desired: Desired) -> list[object]:
    entry = desired.find(L4)
    return [replace(entry, revisions=tuple(replace(item, state="retired") for item in entry.revisions))]


def test_no_tenant_sees_more_specialists_than_a_contract_may_have() -> None:
    desired = empty()
    quota = Quota(labels=100)
    for number in range(61):
        desired = register(desired, Registration(f"N{number}", revision(number), card=CARD), PROFILE, quota)
    with pytest.raises(Conflict, match="specialists of acme would be 65, the limit is 64"):
        register(desired, Registration("X", revision(99), "acme", CARD), PROFILE, quota)


def test_a_tenant_changes_and_sees_only_its_own() -> None:
    desired = registered(registered(registered(empty(), L4, 1), Key("L5", "acme"), 2), Key("L6", "other"), 3)
    permit("acme", Key("L5", "acme"))
    permit("", Key("L6", "other"))
    with pytest.raises(Forbidden, match="everybody's"):
        permit("acme", L4)
    with pytest.raises(NotFound, match="none of your"):
        permit("acme", Key("L6", "other"))
    assert [entry.label for entry in visible(desired, "acme")] == ["L4", "L5"]
    assert len(visible(desired, "")) == 3


def test_a_revision_is_found_by_twelve_digits() -> None:
    entry = registered(empty(), L4, 1).find(L4)
    assert entry.find(revision(1)[:19]).revision == revision(1)
    for wrong in (revision(1)[:18], "sha256:", "", revision(2)):
        with pytest.raises(NotFound, match="is not registered for L4"):
            entry.find(wrong)


def test_an_entry_of_another_contract_takes_no_more_revisions() -> None:
    profile = replace(PROFILE, specialists=(*PROFILE.specialists, own("L4", None)))
    with pytest.raises(Conflict, match="another contract; remove its entry first"):
        register(registered(empty(), L4, 1), replace(WANTED, revision=revision(2)), profile)


def test_changing_what_is_not_registered_names_the_label() -> None:
    with pytest.raises(NotFound, match="'L9'"):
        rollback(empty(), Key("L9"))
