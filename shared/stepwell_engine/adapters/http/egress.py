"""The egress guard: which addresses the engine connects to on behalf of a workflow.

A URL comes from whoever may publish a workflow, the engine stands inside the network of whoever
runs it. So a URL must lead to the public internet, or to a network that the installation allows.
The check is made on addresses, after resolution, and the connection goes to what was checked: a
name that is resolved again could by then lead elsewhere.
"""

import ipaddress
import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import quote, urlsplit

import idna

from stepwell_engine.adapters.runners.attempts import is_shortage

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# host, seconds → its addresses. OSError if there are none, TimeoutError if it took too long.
Resolver = Callable[[str, float], Sequence[str]]

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_LONGEST_NAME: Final = 253
_NAME: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(\.(?!-)[a-z0-9_-]{1,63})*\.?", re.A)
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*", re.A)

# IANA's special-purpose registry: everything that is no address of one public host.
_CLOSED_V4: Final = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT; Alibaba's metadata is 100.100.100.200
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure's platform services
        "169.254.0.0/16",  # link-local; the metadata of most clouds is 169.254.169.254
        "172.16.0.0/12",
        "192.0.0.0/24",  # protocol assignments; Oracle's metadata is 192.0.0.192
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
# Of IPv6 only this block is public at all, and within it not these.
_GLOBAL_V6: Final = ipaddress.IPv6Network("2000::/3")
_CLOSED_V6: Final = tuple(
    ipaddress.IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "3fff::/20",  # documentation
    )
)
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


class EgressRefused(Exception):
    """The URL may not be called. A retry cannot help."""


class NameUnresolved(Exception):
    """The host name has no address, for now."""


@dataclass(frozen=True, slots=True)
class Url:
    """The parts of a URL. `host` is ASCII in lower case; `authority` the Host header; `path`
    contains the query. `address` is set if the host is an address in any spelling.
    """

    scheme: str
    host: str
    port: int
    authority: str
    path: str
    address: Address | None

    def __str__(self) -> str:
        """The URL without its query, which may be secret."""
        return f"{self.scheme}://{self.authority}{self.path.partition('?')[0]}"


@dataclass(frozen=True, slots=True)
class Target:
    """A URL that was checked, and the addresses that it may be reached at, in order."""

    url: Url
    addresses: tuple[str, ...]


def check(url: str, *, allow: Sequence[Network], resolver: Resolver, timeout: float) -> Target:
    """Where to connect for `url`; `allow` are networks that are exempt. `timeout` in s.

    EgressRefused for what may not be called, NameUnresolved for a name without an address,
    TimeoutError; OSError if the host is short of something.
    """
    parts = parse(url)
    if parts.address is not None:
        found: Sequence[Address] = (parts.address,)
    else:
        try:
            texts = resolver(parts.host, timeout)
        except TimeoutError:
            raise
        except OSError as error:
            if is_shortage(error):
                raise
            reason = error.strerror or error
            raise NameUnresolved(f"the name {parts.host} does not resolve: {reason}") from error
        # IPv4 first: many networks resolve IPv6 addresses that they cannot reach.
        found = sorted(
            dict.fromkeys(ipaddress.ip_address(text) for text in texts),
            key=lambda one: one.version,
        )
        if not found:
            raise NameUnresolved(f"the name {parts.host} has no address")
    for address in found:
        if not is_open(address, allow):
            leads = f"{parts.host} leads to {address}" if parts.address is None else f"{address}"
            raise EgressRefused(
                f"{leads}, which is no public address, and this installation does not allow it"
            )
    return Target(parts, tuple(str(address) for address in found))


def is_open(address: Address, allow: Sequence[Network]) -> bool:
    """Whether an address may be connected to: a public one, or one in `allow`."""
    address = _unwrapped(address)
    if any(address in network for network in allow):
        return True
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _CLOSED_V4)
    return address in _GLOBAL_V6 and not any(address in network for network in _CLOSED_V6)


def _unwrapped(address: Address) -> Address:
    """The IPv4 address that a mapped or NAT64 address stands for: packets end up there.

    6to4, Teredo and IPv4-compatible addresses are refused whole.
    """
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


@lru_cache(maxsize=1_000)
def parse(url: str) -> Url:
    """The parts of a URL. EgressRefused if it is none, or not one for an HTTP request."""
    if any(letter <= " " or letter in "\\\x7f" for letter in url):
        raise EgressRefused("the URL contains a space, a control character or a backslash")
    try:
        parts = urlsplit(url)
        name, port = parts.hostname, parts.port
    except ValueError as error:
        raise EgressRefused(f"not a URL: {error}") from error
    if parts.scheme not in _DEFAULT_PORTS:
        raise EgressRefused("the URL must begin with http:// or https://")
    if "@" in parts.netloc:
        raise EgressRefused("the URL contains a user name or password")
    if not name:
        raise EgressRefused("the URL has no host")
    if port == 0:
        raise EgressRefused("port 0 cannot be connected to")
    host, address = _host(name, bracketed="[" in parts.netloc)
    standard = _DEFAULT_PORTS[parts.scheme]
    shown = f"[{host}]" if ":" in host else host.rstrip(".")
    path = parts.path or "/"
    if parts.query:
        path += f"?{parts.query}"
    return Url(
        scheme=parts.scheme,
        host=host,
        port=port or standard,
        authority=shown if port in (None, standard) else f"{shown}:{port}",
        path=quote(path, safe="!#$%&'()*+,/:;=?@[]~"),
        address=address,
    )


def _host(name: str, bracketed: bool) -> tuple[str, Address | None]:
    """A host as ASCII; and its address, if it is one."""
    if bracketed:
        try:
            address = ipaddress.IPv6Address(name)
        except ValueError as error:
            raise EgressRefused(f"[{name}] is not an IPv6 address") from error
        if address.scope_id is not None:
            raise EgressRefused(f"[{name}] names a zone")
        return str(address), address
    if not name.isascii():
        try:
            # UTS 46 also turns full-width digits and dots into plain ones.
            name = idna.encode(name, uts46=True).decode()
        except idna.IDNAError as error:
            raise EgressRefused(f"the host is not a valid name: {error}") from error
    if len(name.rstrip(".")) > _LONGEST_NAME or _NAME.fullmatch(name) is None:
        raise EgressRefused("the host is not a valid name")
    bare = name.removesuffix(".")
    if _NUMBER.fullmatch(bare.rpartition(".")[2]) is None:
        return name, None
    # A name cannot end in a number: this is an address, in one of the spellings that every
    # system call takes (127.1, 0x7f.0.0.1, 0177.1, 2130706433).
    try:
        packed = socket.inet_aton(bare)
    except OSError as error:
        raise EgressRefused(f"{bare} is not an IPv4 address") from error
    return bare, ipaddress.IPv4Address(packed)
