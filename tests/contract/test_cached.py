"""What a remembered answer must never do: outlive the change that made it old."""

from stepwell_engine.adapters.cached.resources import CachedResources
from stepwell_engine.adapters.memory.resources import MemoryResources
from stepwell_engine.ports import Resource


def queue(config: bytes) -> Resource:
    return Resource("demo", "queue", "mails", config, None, 0)


class SlowResources(MemoryResources):
    """Something else happens between a read and its answer."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.meanwhile: CachedResources | None = None

    def get(self, project: str, kind: str, name: str, within: int | None = None) -> Resource | None:
        self.reads += 1
        found = super().get(project, kind, name, within)
        if self.meanwhile is not None:
            cached, self.meanwhile = self.meanwhile, None
            cached.put(queue(b"new"))
        return found


def read(cached: CachedResources) -> bytes | None:
    found = cached.get("demo", "queue", "mails")
    return None if found is None else found.config


def test_an_answer_is_read_once_and_again_after_any_change() -> None:
    inner = SlowResources()
    cached = CachedResources(inner)
    cached.put(queue(b"old"))
    assert [read(cached), read(cached), inner.reads] == [b"old", b"old", 1]
    cached.put(queue(b"new"))
    assert [read(cached), inner.reads] == [b"new", 2]
    cached.delete("demo", "queue", "mails")
    assert read(cached) is None


def test_an_answer_that_a_change_overtook_is_not_remembered() -> None:
    inner = SlowResources()
    cached = CachedResources(inner)
    cached.put(queue(b"old"))
    inner.meanwhile = cached
    assert read(cached) == b"old"
    assert read(cached) == b"new"


def test_that_there_is_nothing_is_not_remembered() -> None:
    inner = SlowResources()
    cached = CachedResources(inner)
    assert read(cached) is None
    inner.put(queue(b"from elsewhere"))
    assert read(cached) == b"from elsewhere"
