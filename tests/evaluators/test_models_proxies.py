"""Which proxy and certificates of the environment serve a call, and what a proxy gets to see."""

import asyncio
from base64 import b64encode

import pytest

from evaluators.core import CallError, FatalError, Reply
from evaluators.models import connect
from evaluators.models.spec import parse
from evaluators.secrets import Key
from tests.support.loopback import Answer, Loopback, Seen, loopback
from tests.support.model_calls import SECRET, ask, asked, both, spec_of

OPENAI = "https://models.invalid/v1"
ELSEWHERE = {"openai": OPENAI, "openai-responses": OPENAI, "anthropic": "https://models.invalid"}


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def called(provider: str = "openai") -> Reply:
    """What a model on another machine answers."""
    return ask(parse(f"{provider}:m@{ELSEWHERE[provider]}", {}), asked())


def seen_by(proxy: Loopback, provider: str = "openai") -> list[Seen]:
    """The requests of one call that reach a proxy, which refuses to serve."""
    with pytest.raises(CallError):
        called(provider)
    return proxy.requests


@pytest.mark.parametrize("name", ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_proxies_of_the_environment_are_not_for_loopback(
    monkeypatch: pytest.MonkeyPatch, name: str, host: str
) -> None:
    """A local server is reached past a proxy that is set for the rest of the world."""
    with loopback() as server, loopback(Answer(status=502)) as proxy:
        monkeypatch.setenv(name, proxy.url)
        spec = parse(f"openai:m@{server.url.replace('127.0.0.1', host)}/v1", {})
        assert ask(spec, asked("[[answer=ok]]")).text == "ok"
        assert proxy.count == 0


@both
@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
def test_a_proxy_of_the_environment_serves_other_hosts(
    monkeypatch: pytest.MonkeyPatch, provider: str, name: str
) -> None:
    """Requests to other machines go through it; the key stays in the tunnel, unseen by it."""
    with loopback(Answer(status=407)) as proxy:
        monkeypatch.setenv(name, proxy.url)
        (seen,) = seen_by(proxy, provider)
    assert (seen.method, seen.path) == ("CONNECT", "models.invalid:443")
    assert SECRET not in str(seen)
    assert not {"authorization", "proxy-authorization", "x-api-key"} & set(seen.headers)


def test_a_proxy_may_ask_for_a_password(monkeypatch: pytest.MonkeyPatch) -> None:
    """User and password of a proxy's URL are sent to it, and stand in no message (F18)."""
    with loopback(Answer(status=407)) as proxy:
        address = proxy.url.removeprefix("http://")
        monkeypatch.setenv("HTTPS_PROXY", f"us%40er:pass5ord@{address}")
        with pytest.raises(CallError) as caught:
            called()
        (seen,) = proxy.requests
    assert seen.headers["proxy-authorization"] == f"Basic {b64encode(b'us@er:pass5ord').decode()}"
    assert "pass5ord" not in str(caught.value)


@pytest.mark.parametrize("listed", ["models.invalid", ".invalid", "a.example, models.invalid", "*"])
def test_no_proxy(monkeypatch: pytest.MonkeyPatch, listed: str) -> None:
    """Hosts that NO_PROXY lists are called past the proxy."""
    with loopback() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        monkeypatch.setenv("NO_PROXY", listed)
        assert seen_by(proxy) == []


@pytest.mark.parametrize("value", ["socks5://u:pw5ecret@127.0.0.1:9", "http://h:99999", "//x"])
def test_a_proxy_that_cannot_be_one(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """A proxy that speaks no HTTP, or no URL at all, ends the run and is not shown."""
    monkeypatch.setenv("HTTPS_PROXY", value)
    with pytest.raises(FatalError, match="HTTPS_PROXY or ALL_PROXY is not") as caught:
        called()
    assert caught.value.kind == "environment"
    assert "pw5ecret" not in str(caught.value)


def test_nobody_listens_at_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that is not there is like a server that is not there (F18)."""
    with loopback() as proxy:
        address = proxy.url
    monkeypatch.setenv("HTTPS_PROXY", address)
    with pytest.raises(CallError, match="no connection") as caught:
        called()
    assert caught.value.kind == "unreachable"


def test_a_netrc_file_is_not_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A password of .netrc, even its default one, takes the place of no API key."""
    netrc = tmp_path_factory.mktemp("home") / "netrc"
    netrc.write_text("default login someone password else\n")
    monkeypatch.setenv("NETRC", str(netrc))
    with loopback() as server, loopback(Answer(status=407)) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        ask(spec_of("openai", server), asked())
        assert server.requests[0].headers["authorization"] == f"Bearer {SECRET}"
        assert "proxy-authorization" not in seen_by(proxy)[0].headers


def test_certificates_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of certificates that cannot be read ends the run, and the variable is named."""
    monkeypatch.setenv("SSL_CERT_FILE", "no-such-file.pem")
    with pytest.raises(FatalError, match="SSL_CERT_FILE or SSL_CERT_DIR") as caught:
        called()
    assert caught.value.kind == "environment"


def test_certificates_are_read_for_tls_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server without TLS is called whatever the certificates: reading them takes long."""
    monkeypatch.setenv("SSL_CERT_FILE", "no-such-file.pem")
    with loopback() as server:
        assert ask(spec_of("openai", server), asked("[[answer=ok]]")).text == "ok"


def test_a_model_opens_its_line_once_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting that was wrong is looked at again at the next call."""
    monkeypatch.setenv("HTTPS_PROXY", "ftp://h")
    model = connect(parse(f"openai:m@{OPENAI}", {}), Key(SECRET))

    async def twice() -> None:
        with pytest.raises(FatalError):
            await model.complete(asked())
        with loopback(Answer(status=407)) as proxy:
            monkeypatch.setenv("HTTPS_PROXY", proxy.url)
            with pytest.raises(CallError):
                await model.complete(asked())
            assert proxy.count == 1
        await model.close()

    asyncio.run(twice())
