"""Projects."""

from dataclasses import replace

from stepwell_engine.ports import Project, Projects
from tests.contract.heads import NOW

SHOP = Project("shop", "acme-inc", NOW)


def test_a_project_comes_back(projects: Projects) -> None:
    assert projects.get("shop") is None
    projects.put(SHOP)
    projects.put(Project("bank", "other", NOW))
    assert projects.get("shop") == SHOP
    assert projects.get("bank") == Project("bank", "other", NOW)


def test_a_project_is_replaced(projects: Projects) -> None:
    projects.put(SHOP)
    projects.put(replace(SHOP, organization="other"))
    assert projects.get("shop") == replace(SHOP, organization="other")
