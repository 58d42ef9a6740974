"""Grants."""

from dataclasses import replace

import pytest

from stepwell_engine.ports import Grant, Grants
from tests.contract.heads import NOW

GRANT = Grant("ab" * 32, "session", "acme-inc", "owner")


@pytest.mark.parametrize(
    "grant",
    [
        GRANT,
        replace(GRANT, expires_at=NOW),
        Grant("cd" * 32, "secret", "acme-inc", "project", "shop"),
        Grant("cd" * 32, "publishable", "acme-inc", None, "shop", 0),
    ],
)
def test_a_grant_comes_back(grants: Grants, grant: Grant) -> None:
    assert grants.get(grant.token_hash) is None
    grants.put(grant)
    assert grants.get(grant.token_hash) == grant
    assert grants.get("00" * 32) is None


def test_a_grant_is_replaced(grants: Grants) -> None:
    grants.put(replace(GRANT, expires_at=NOW))
    grants.put(GRANT)
    assert grants.get(GRANT.token_hash) == GRANT
