"""Resources."""

from dataclasses import replace

from stepwell_engine.ports import Resource, Resources
from tests.contract.heads import NOW

QUEUE = Resource("shop", "queue", "orders", b'{"visibility":30}', None, NOW)


def test_a_resource_comes_back(resources: Resources) -> None:
    assert resources.get("shop", "queue", "orders") is None
    resources.put(QUEUE)
    sealed = replace(QUEUE, kind="function", config=b"", sealed="sealed text")
    resources.put(sealed)
    assert resources.get("shop", "queue", "orders") == QUEUE
    assert resources.get("shop", "function", "orders") == sealed
    assert resources.get("bank", "queue", "orders") is None


def test_a_resource_is_replaced(resources: Resources) -> None:
    resources.put(replace(QUEUE, sealed="old"))
    resources.put(QUEUE)
    assert resources.get("shop", "queue", "orders") == QUEUE
    assert list(resources.list("shop", "queue", None, 10)) == [QUEUE]


def test_resources_of_a_kind_are_listed_by_name_page_by_page(resources: Resources) -> None:
    for name in "bdaec":
        resources.put(replace(QUEUE, name=name))
    resources.put(replace(QUEUE, kind="function", name="a2"))
    resources.put(replace(QUEUE, project="bank", name="a3"))
    pages = [resources.list("shop", "queue", after, 2) for after in (None, "b", "d", "e")]
    assert [[one.name for one in page] for page in pages] == [["a", "b"], ["c", "d"], ["e"], []]


def test_a_dropped_resource_is_gone_and_no_other(resources: Resources) -> None:
    other = replace(QUEUE, name="emails")
    resources.put(QUEUE)
    resources.put(other)
    assert resources.delete("shop", "queue", "orders")
    assert not resources.delete("shop", "queue", "orders")
    assert not resources.delete("shop", "function", "emails")
    assert resources.get("shop", "queue", "orders") is None
    assert resources.get("shop", "queue", "emails") == other
