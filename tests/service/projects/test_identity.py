"""Tokens, roles and projects."""

import hashlib

import pytest

from stepwell_engine.adapters.memory.grants import MemoryGrants
from stepwell_engine.adapters.memory.projects import MemoryProjects
from stepwell_engine.errors import Problem
from stepwell_engine.ports import Grant
from stepwell_engine.service.projects.identity import ALLOWED, Actor, Identity, Permission, Role
from tests.service.world import START, CountedIds, ManualClock


class Office:
    def __init__(self) -> None:
        self.projects = MemoryProjects()
        self.grants = MemoryGrants()
        self.clock = ManualClock()
        self.identity = Identity(self.projects, self.grants, self.clock, CountedIds())
        self.identity.create_project("org", "demo")

    def refused(self, role: Role | None, permission: Permission, ref: str = "demo") -> str | None:
        """The code of the refusal, None if it is allowed."""
        try:
            self.identity.authorize(Actor("org", role), permission, ref)
        except Problem as problem:
            return problem.code
        return None


@pytest.fixture
def office() -> Office:
    return Office()


@pytest.mark.parametrize("role", Role)
def test_a_minted_token_stands_for_its_member(office: Office, role: Role) -> None:
    token = office.identity.mint_session("org", role)
    assert token.startswith("swt_")
    assert office.identity.identify(token) == Actor("org", role)


def test_only_the_hash_of_a_token_is_kept(office: Office) -> None:
    token = office.identity.mint_session("org", Role.OWNER)
    digest = hashlib.sha256(token.encode()).hexdigest()
    grant = office.grants.get(digest)
    assert grant == Grant(digest, "session", "org", "owner")
    assert token not in repr(vars(office.grants))


def test_two_tokens_are_never_the_same(office: Office) -> None:
    tokens = {office.identity.mint_session("org", Role.OWNER) for _ in range(100)}
    assert len(tokens) == 100


def test_a_token_is_good_until_it_expires(office: Office) -> None:
    token = office.identity.mint_session("org", Role.OWNER, expires_at=START + 1_000)
    office.clock.at = START + 999
    assert office.identity.identify(token).role is Role.OWNER
    office.clock.at = START + 1_000
    with pytest.raises(Problem, match="has expired"):
        office.identity.identify(token)


@pytest.mark.parametrize("token", ["", " ", "a b", "ä", "\ud800", "a" * 201, "a\n", "a/b"])
def test_a_malformed_token_is_refused_before_it_is_looked_up(office: Office, token: str) -> None:
    with pytest.raises(Problem, match="malformed") as refusal:
        office.identity.identify(token)
    assert refusal.value.code == "unauthenticated"


@pytest.mark.parametrize("token", ["swt_x", "a", "a" * 200])
def test_an_unknown_token_is_refused(office: Office, token: str) -> None:
    with pytest.raises(Problem, match="not known") as refusal:
        office.identity.identify(token)
    assert refusal.value.code == "unauthenticated"


def test_a_grant_that_is_not_the_tokens_own_is_refused(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Grant("0" * 64, "session", "org", "owner")
    monkeypatch.setattr(office.grants, "get", lambda _: other)
    with pytest.raises(Problem, match="not known"):
        office.identity.identify("swt_x")


def test_the_table_of_permissions() -> None:
    developers = {Role.OWNER, Role.ADMIN, Role.DEVELOPER}
    assert {
        Permission.VIEW: {*developers, Role.VIEWER},
        Permission.MANAGE: developers,
        Permission.RUN: developers,
        Permission.ADMINISTER: {Role.OWNER, Role.ADMIN},
    } == ALLOWED


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("permission", Permission)
def test_a_role_has_the_permissions_of_the_table(
    office: Office, role: Role, permission: Permission
) -> None:
    expected = None if role in ALLOWED[permission] else "forbidden"
    assert office.refused(role, permission) == expected
    assert office.refused(role, permission, "nothing") == "not_found"


def test_a_project_of_another_organization_is_not_found(office: Office) -> None:
    office.identity.create_project("rival", "theirs")
    assert office.refused(Role.OWNER, Permission.VIEW, "theirs") == "not_found"


@pytest.mark.parametrize("ref", ["demo", "nothing"])
def test_keys_are_forbidden_whatever_the_project(office: Office, ref: str) -> None:
    assert office.refused(None, Permission.VIEW, ref) == "forbidden"


def test_a_project_that_exists_is_returned_as_it_is(office: Office) -> None:
    first = office.projects.get("demo")
    office.clock.sleep(1_000)
    assert office.identity.create_project("org", "demo") == first


def test_a_taken_ref_is_a_conflict(office: Office) -> None:
    with pytest.raises(Problem) as refusal:
        office.identity.create_project("rival", "demo")
    assert refusal.value.code == "conflict"


@pytest.mark.parametrize("ref", ["", "Demo", "-a", "a" * 65, "a b", "a\n"])
def test_a_malformed_ref_is_refused(office: Office, ref: str) -> None:
    with pytest.raises(Problem) as refusal:
        office.identity.create_project("org", ref)
    assert refusal.value.code == "invalid_request"


@pytest.mark.parametrize("organization", ["", "Org", "a" * 65])
def test_a_malformed_organization_is_refused(office: Office, organization: str) -> None:
    with pytest.raises(Problem, match=r"the organization .* must match") as refusal:
        office.identity.create_project(organization, "new")
    assert refusal.value.code == "invalid_request"
    assert office.projects.get("new") is None


def test_the_longest_ref_is_taken(office: Office) -> None:
    assert office.identity.create_project("org", "a" * 64).ref == "a" * 64
