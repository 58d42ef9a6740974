"""Nothing in the repository names another product, a package registry, or somebody's machine."""

import hashlib
import re
from collections.abc import Iterator, Set
from pathlib import PurePosixPath

import pytest

from tests.arch.sources import ROOT, tracked

# Digests of the names, so that this file does not contain what it forbids. To add one:
# `digest("name")`, in lower case; of a host the registered domain, its subdomains are meant too.
OTHER_PRODUCTS = frozenset({"bbc013116888", "8ba7b51758ee", "1aa0e15b13a7", "df7249fe4f46"})
# Where packages come from is a setting of the user's pip, uv or npm.
REGISTRIES = frozenset(
    {
        "a4aa2ac280bb",
        "8b5bb5eb9d75",
        "8743857e3ea0",
        "3ca29e55be4b",
        "87d14f070cb9",
        "75adac515f0b",
        "344aa72d23ae",
        "789e46d79514",
        "66394d5952c2",
    }
)

WORD = re.compile(r"[a-z0-9]+")
HOST = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+")
# A home or work folder at the start of a path; not a part of a longer path or of a URL.
MACHINE_PATH = re.compile(r"(?<![\w.~*/-])/(?:home|Users|root|work)/[\w.]+|\b[A-Z]:\\Users\\\w+")


def digest(name: str) -> str:
    """What stands for a name in the lists above."""
    return hashlib.sha256(name.encode()).hexdigest()[:12]


def named(text: str, products: Set[str], registries: Set[str]) -> Iterator[str]:
    """Names of products and registries in a text."""
    lower = text.lower()
    for word in set(WORD.findall(lower)):
        if digest(word) in products:
            yield f"the name {word}"
    for host in set(HOST.findall(lower)):
        if digest(".".join(host.split(".")[-2:])) in registries:
            yield f"the registry {host}"


def machine_paths(text: str) -> Iterator[str]:
    """Paths that exist on one machine only."""
    for found in MACHINE_PATH.finditer(text):
        yield f"the path {found.group()}"


def _text(path: PurePosixPath) -> str:
    """The path and what is in the file; of a binary file what can be read."""
    return f"{path}\n{(ROOT / path).read_bytes().decode(errors='replace')}"


def test_no_file_names_what_is_not_ours() -> None:
    assert tracked()
    found = [
        f"{path}: {problem}"
        for path in tracked()
        for text in [_text(path)]
        for problem in (*named(text, OTHER_PRODUCTS, REGISTRIES), *machine_paths(text))
    ]
    assert found == []


@pytest.mark.parametrize(
    "text", ["Acme", "an acme-key", "ACME_SIGNING_KEY", "@acme/sdk", "acme.workflows.json"]
)
def test_the_name_of_another_product_is_found(text: str) -> None:
    assert list(named(text, {digest("acme")}, frozenset())) == ["the name acme"]


@pytest.mark.parametrize(
    "text", ["https://packages.example/simple", "mirror.packages.example:443", "packages.example"]
)
def test_a_registry_is_found(text: str) -> None:
    assert len(list(named(text, frozenset(), {digest("packages.example")}))) == 1


@pytest.mark.parametrize("text", ["acmeism", "example.packages", "packages.example.net"])
def test_what_only_looks_like_it_passes(text: str) -> None:
    assert list(named(text, {digest("acme")}, {digest("packages.example")})) == []


@pytest.mark.parametrize("folder", ["home", "Users", "root", "work"])
def test_a_path_of_a_machine_is_found(folder: str) -> None:
    path = f"/{folder}/ada"
    for text in (path, f'"{path}/project"', f"DATA={path}", f"see {path}/x", f"a:{path}"):
        assert list(machine_paths(text)) == [f"the path {path}"]


def test_paths_of_addresses_and_of_our_own_pass() -> None:
    text = "https://example.com/home/ada docs/work/plan.md ./root/a ~/home/a /v1/projects"
    assert list(machine_paths(text)) == []
