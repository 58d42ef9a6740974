"""Defects in how a journal is stored: pages, index pages, names of blobs, histories of attempts."""

import json
from collections.abc import Sequence
from dataclasses import astuple, replace
from typing import Any

from stepwell_engine.core.run.attempt_history import history_cells
from stepwell_engine.core.run.head import Blob
from stepwell_engine.core.run.journal import Journal, PageRef
from stepwell_engine.core.run.journal_codec import JournalCodec, Packed, decode_index, index_pages
from tests.sim.mutation import Mutation, patch


def _pack_without_token(codec: JournalCodec, journal: Journal, token: str, write: int) -> Packed:
    return _PACK(codec, journal, "", write)


def _drops_a_page(pages: Sequence[PageRef], token: str, write: int) -> Any:
    left, index = _INDEX_PAGES(pages, token, write)
    kept = [(blob, list(map(astuple, decode_index(blob.data)[1:]))) for blob in index]
    return left, tuple(replace(blob, data=json.dumps(refs).encode()) for blob, refs in kept)


def _indexes_at_once(pages: Sequence[PageRef], token: str, write: int) -> Any:
    """Every page has an index page of its own."""
    *older, page = pages
    index = PageRef(token, write, page.count, 1)
    blob = Blob(index.blob, json.dumps([astuple(page)]).encode())
    left, more = _INDEX_PAGES((*older, index), token, write)
    return left, (blob, *more)


def _named(name: str) -> property:
    """A name for index pages; other pages keep theirs."""
    return property(lambda page: name.format(page) if page.level else _NAME_OF_PAGE(page))


def _drops_an_attempt(rows: Sequence[Any], base: int) -> Any:
    return _HISTORY_CELLS(rows[1:], base)


_CODEC = "stepwell_engine.core.run.journal_codec."
_INDEX = _CODEC + "index_pages"
_PAGE_NAME = "stepwell_engine.core.run.journal.PageRef.blob"
_PACK = JournalCodec.pack
_INDEX_PAGES = index_pages
_HISTORY_CELLS = history_cells
_NAME_OF_PAGE = PageRef.blob.fget  # type: ignore[attr-defined]

STORED: tuple[Mutation, ...] = (
    patch("payload key without the token", _CODEC + "JournalCodec.pack", _pack_without_token, 1),
    patch(
        "page named after the commit alone",
        "stepwell_engine.core.run.head.Head.writes",
        property(lambda head: head.commit_seq),
        1,
    ),
    patch("a page is left out of its index", _INDEX, _drops_a_page, 1),
    patch("every page has an index page", _INDEX, _indexes_at_once, 14),
    patch("references to pages stay in the head", _INDEX, lambda pages, *_: (tuple(pages), ()), 14),
    patch("index page named without the token", _PAGE_NAME, _named("i.{0.write}.{0.level}"), 1),
    patch("index page named without the write", _PAGE_NAME, _named("i.{0.token}.{0.level}"), 1),
    patch("index page named without the level", _PAGE_NAME, _named("i.{0.token}.{0.write}"), 1),
    patch("an attempt is not stored", _CODEC + "history_cells", _drops_an_attempt, 1),
)
