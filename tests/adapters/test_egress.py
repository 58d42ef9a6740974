"""The egress guard: what may be called, and where it leads."""

import ipaddress

import pytest

from stepwell_engine.adapters.http.egress import (
    EgressRefused,
    NameUnresolved,
    Network,
    check,
    parse,
)
from tests.adapters.conftest import LOOPBACK, names


def targets(url: str, *addresses: str, allow: tuple[Network, ...] = ()) -> tuple[str, ...]:
    """Where a URL may be connected to, if `hooks.example.com` has these addresses."""
    resolver = names(hooks_example_com=list(addresses))
    return check(url, allow=allow, resolver=resolver, timeout=1).addresses


CLOSED = [
    "0.0.0.0",  # noqa: S104
    "10.0.0.0",
    "10.255.255.255",
    "100.64.0.0",
    "100.100.100.200",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.0.1",
    "169.254.169.254",
    "169.254.170.2",
    "172.16.0.0",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.0",
    "192.168.255.255",
    "198.18.0.0",
    "198.19.255.255",
    "198.51.100.7",
    "203.0.113.7",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:a9fe:a9fe",
    "::ffff:0:7f00:1",
    "64:ff9b::10.0.0.1",
    "64:ff9b::169.254.169.254",
    "64:ff9b:1::8.8.8.8",
    "100::1",
    "2001::1",
    "2001:2::1",
    "2001:10::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:808:808::",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fd20:ce::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
]

OPEN = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "168.63.129.15",
    "172.15.255.255",
    "172.32.0.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2a00:1450:4001::200e",
    "64:ff9b::8.8.8.8",
    "::ffff:8.8.8.8",
]


@pytest.mark.parametrize("address", CLOSED)
def test_a_name_that_leads_to_a_closed_address_is_refused(address: str) -> None:
    with pytest.raises(EgressRefused, match=r"hooks\.example\.com leads to .*no public address"):
        targets("https://hooks.example.com/", address)


@pytest.mark.parametrize("address", [one for one in CLOSED if "%" not in one])
def test_a_closed_address_in_the_url_is_refused(address: str) -> None:
    host = f"[{address}]" if ":" in address else address
    with pytest.raises(EgressRefused, match="no public address"):
        targets(f"http://{host}:8080/x")


@pytest.mark.parametrize("address", OPEN)
def test_public_addresses_are_open(address: str) -> None:
    expected = str(ipaddress.ip_address(address))
    assert targets("https://hooks.example.com/", address) == (expected,)
    host = f"[{address}]" if ":" in address else address
    assert targets(f"https://{host}/") == (expected,)


@pytest.mark.parametrize("closed", ["127.0.0.1", "fd00:ec2::254", "::ffff:192.168.1.1"])
def test_a_name_with_one_closed_address_among_open_ones_is_refused(closed: str) -> None:
    with pytest.raises(EgressRefused):
        targets("https://hooks.example.com/", "8.8.8.8", closed, "1.1.1.1")


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "0x7f000001",
        "0X7F.0.0.1",
        "0177.0.0.1",
        "017700000001",
        "127.1",
        "127.0.1",
        "127.0.0.1.",
        "0",
        "0.",
        "10.1",
        "3232235521",
        "0xa9fea9fe",
        "169.254.43518",
        "0251.0376.0251.0376",
        "127.0.0.0x1",
        # full-width digits, and dots of other scripts
        "\uff11\uff12\uff17.\uff10.\uff10.\uff11",
        "127\u30020\u30020\u30021",
        "[::FFFF:7f00:1]",
        "[0:0:0:0:0:ffff:127.0.0.1]",
        "[0000:0000::0001]",
    ],
)
def test_no_spelling_of_a_closed_address_passes(host: str) -> None:
    with pytest.raises(EgressRefused, match="no public address"):
        targets(f"http://{host}/latest/meta-data")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://hooks.example.com/", "must begin with http"),
        ("file:///etc/passwd", "must begin with http"),
        ("gopher://hooks.example.com/", "must begin with http"),
        ("//hooks.example.com/", "must begin with http"),
        ("", "must begin with http"),
        ("http://", "no host"),
        ("http:///path", "no host"),
        ("http://user:password@hooks.example.com/", "user name or password"),
        ("http://@hooks.example.com/", "user name or password"),
        ("http://hooks.example.com@127.0.0.1/", "user name or password"),
        ("http://hooks.example.com\\@127.0.0.1/", "backslash"),
        ("http://hooks.example.com/a b", "space"),
        ("http://hooks.example.com/a\r\nX: y", "control character"),
        ("http://hooks.example.com:0/", "port 0"),
        ("http://hooks.example.com:65536/", "not a URL"),
        ("http://hooks.example.com:port/", "not a URL"),
        ("http://[::1/", "not a URL"),
        ("http://[hooks.example.com]/", "IPv6|URL"),
        ("http://[fe80::1%25eth0]/", "IPv6|URL|zone"),
        ("http://%31%32%37.0.0.1/", "not a valid name"),
        ("http://a..example.com/", "not a valid name"),
        ("http://-a.example.com/", "not a valid name"),
        ("http://exa$mple.com/", "not a valid name"),
        ("http://" + "a" * 64 + ".com/", "not a valid name"),
        ("http://" + "a." * 127 + "com/", "not a valid name"),
        ("http://\u2488example.com/", "not a valid name"),
        ("http://256.256.256.256/", "not an IPv4 address"),
        ("http://1.2.3.4.5/", "not an IPv4 address"),
        ("http://08.8.8.8/", "not an IPv4 address"),
        ("http://example.0x/", "not an IPv4 address"),
    ],
)
def test_what_is_no_plain_http_url_is_refused(url: str, reason: str) -> None:
    with pytest.raises(EgressRefused, match=reason):
        targets(url, "8.8.8.8")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "[::1]", "[::ffff:127.0.0.1]", "127.1"])
def test_an_allowed_network_is_exempt(host: str) -> None:
    assert len(targets(f"http://{host}/", allow=LOOPBACK)) == 1
    assert targets("http://hooks.example.com/", "127.0.0.1", "8.8.8.8", allow=LOOPBACK)


@pytest.mark.parametrize("host", ["10.0.0.1", "169.254.169.254", "[::2]", "0.0.0.1"])
def test_only_the_allowed_network_is_exempt(host: str) -> None:
    with pytest.raises(EgressRefused):
        targets(f"http://{host}/", allow=LOOPBACK)


def test_a_name_without_address_is_not_refused_but_unresolved() -> None:
    with pytest.raises(NameUnresolved, match=r"nowhere\.example\.com does not resolve: Name"):
        targets("https://nowhere.example.com/")
    with pytest.raises(NameUnresolved, match="no address"):
        targets("https://hooks.example.com/")


def test_ipv4_comes_first_and_each_address_once() -> None:
    url = "https://hooks.example.com/"
    given = ("2606:4700::2", "1.1.1.1", "2606:4700::1", "8.8.8.8", "1.1.1.1")
    assert targets(url, *given) == ("1.1.1.1", "8.8.8.8", "2606:4700::2", "2606:4700::1")


@pytest.mark.parametrize(
    ("url", "host", "port", "authority", "path"),
    [
        ("http://Hooks.Example.COM", "hooks.example.com", 80, "hooks.example.com", "/"),
        ("HTTPS://a.com:443/x?y=1#z", "a.com", 443, "a.com", "/x?y=1"),
        ("https://a.com:8443", "a.com", 8443, "a.com:8443", "/"),
        ("http://a.com:443/", "a.com", 443, "a.com:443", "/"),
        ("http://a.com?q=%20", "a.com", 80, "a.com", "/?q=%20"),
        ("http://a.com./", "a.com.", 80, "a.com", "/"),
        ("http://a_b.example/ü?ö=ß", "a_b.example", 80, "a_b.example", "/%C3%BC?%C3%B6=%C3%9F"),
        ("http://Bücher.example/", "xn--bcher-kva.example", 80, "xn--bcher-kva.example", "/"),
        ("http://[2606:4700::1]:81/", "2606:4700::1", 81, "[2606:4700::1]:81", "/"),
    ],
)
def test_the_parts_of_a_url(url: str, host: str, port: int, authority: str, path: str) -> None:
    parts = parse(url)
    assert (parts.host, parts.port, parts.authority, parts.path) == (host, port, authority, path)


def test_a_url_in_words_is_without_its_query() -> None:
    assert str(parse("https://a.com:8443/hook?token=abc")) == "https://a.com:8443/hook"
