"""Behind a proxy with TLS: links, cookies and windows as docs/deploy.md promises them."""

import asyncio
import contextlib
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
from websockets.asyncio.client import connect

from segue.runtime.windows.frames import OpenRequest, encode
from tests import parts
from tests.adapters.shared.test_connections import certified
from tests.cli.test_serve import run, serve
from tests.ports import free_port

_KEPT = ("client_body", "fastcgi", "proxy", "scgi", "uwsgi")
"""What nginx keeps in files for a while."""
DEPLOY = Path(__file__).parents[3] / "docs" / "deploy.md"


@asynccontextmanager
async def proxy(tls: ssl.SSLContext, backend: list[int]) -> AsyncIterator[int]:
    """A proxy that takes TLS off and passes the rest on as it is, Host included."""

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
        writer.close()

    async def passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", backend[0])
        await asyncio.gather(pipe(reader, back), pipe(there, writer), return_exceptions=True)

    server = await asyncio.start_server(passed_on, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_links_cookies_and_windows_go_by_the_address_of_the_proxy(tmp_path: Path) -> None:
    backend: list[int] = []
    tls = certified(tmp_path)
    trusting = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
    async with proxy(tls, backend) as port:
        url = f"https://127.0.0.1:{port}"
        (tmp_path / "segue.toml").write_text(f'[server]\nurl = "{url}"\n')
        async with serve(tmp_path) as here:
            backend.append(int(here.url.rpartition(":")[2]))
            async with run(tmp_path, "signin") as asked:
                _, link, _ = await asked.end()
            assert link.startswith(f"{url}/signin?code=")
            async with httpx2.AsyncClient(base_url=url, verify=trusting) as browser:
                answer = await browser.post("/signin", data={"code": link.strip().partition("=")[2]})
                given = answer.headers["set-cookie"]
                assert given.startswith("__Host-segue=")
                assert "Secure" in given
                assert (await browser.get("/")).status_code == 200
            headers = {"Cookie": given.partition(";")[0]}
            live = url.replace("https", "wss") + "/live"
            async with connect(live, ssl=trusting, origin=url, additional_headers=headers, proxy=None) as window:  # type: ignore[arg-type]  # a plain string
                await window.send(encode(OpenRequest()))
                assert "transcript" in str(await asyncio.wait_for(window.recv(), 20))


@asynccontextmanager
async def nginx(folder: Path, recipe: str) -> AsyncIterator[None]:
    """The proxy that most people have, with a recipe of theirs."""
    program = parts.nginx()
    config = folder / "nginx.conf"
    # Its own folders are root's, and only there once its package was installed.
    kept = "\n".join(f"{kind}_temp_path {folder}/{kind};" for kind in _KEPT)
    config.write_text(
        f"pid {folder}/pid;\nerror_log stderr;\nevents {{ worker_connections 4096; }}\n"
        f"http {{\naccess_log off;\n{kept}\n{recipe}\n}}\n"
    )
    command = (program, "-p", str(folder), "-c", str(config), "-e", "stderr", "-g", "daemon off; master_process off;")
    process = await asyncio.create_subprocess_exec(*command)
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


async def answered(port: int, context: ssl.SSLContext) -> None:
    """Wait until somebody answers with TLS at a port."""
    async with asyncio.timeout(90):
        while True:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
                writer.close()
                return
            await asyncio.sleep(0.02)


async def test_the_recipe_works_word_for_word_with_nginx_itself(tmp_path: Path) -> None:
    certified(tmp_path)
    trusting = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
    text = DEPLOY.read_text("utf-8")
    [recipe] = re.findall(r"```nginx\n(.*?)```", text, re.DOTALL)
    (tmp_path / "segue.toml").write_text('[server]\nurl = "https://segue.example.org"\n')
    assert (tmp_path / "segue.toml").read_text().splitlines()[1] in text
    port = free_port()
    async with serve(tmp_path) as here:
        letsencrypt = "/etc/letsencrypt/live/segue.example.org"
        for theirs, ours in {
            "443": str(port),
            "127.0.0.1:8800": here.url.removeprefix("http://"),
            f"{letsencrypt}/fullchain.pem": str(tmp_path / "cert.pem"),
            f"{letsencrypt}/privkey.pem": str(tmp_path / "key.pem"),
        }.items():
            assert theirs in recipe
            recipe = recipe.replace(theirs, ours)
        async with nginx(tmp_path, recipe):
            await answered(port, trusting)
            async with run(tmp_path, "signin") as asked:
                _, link, _ = await asked.end()
            assert link.startswith("https://segue.example.org/signin?code=")
            there, named = f"https://127.0.0.1:{port}", {"Host": "segue.example.org"}
            async with httpx2.AsyncClient(base_url=there, verify=trusting, headers=named) as browser:
                answer = await browser.post("/signin", data={"code": link.strip().partition("=")[2]})
                given = answer.headers["set-cookie"]
                assert given.startswith("__Host-segue=")
                page = await browser.get("/")
                assert (page.status_code, page.headers["strict-transport-security"]) == (200, "max-age=31536000")
                assert (await browser.get("/", headers={"Host": "elsewhere.example"})).status_code == 421
            async with connect(
                "wss://segue.example.org/live",
                host="127.0.0.1",
                port=port,
                ssl=trusting,
                server_hostname="127.0.0.1",
                origin="https://segue.example.org",  # type: ignore[arg-type]  # a plain string
                additional_headers={"Cookie": given.partition(";")[0]},
                proxy=None,
            ) as window:
                await window.send(encode(OpenRequest()))
                assert "transcript" in str(await asyncio.wait_for(window.recv(), 20))


def test_the_recipe_passes_on_what_segue_needs() -> None:
    [block] = re.findall(r"```nginx\n(.*?)```", DEPLOY.read_text("utf-8"), re.DOTALL)
    assert block.count("{") == block.count("}")
    directives = {" ".join(line.split()) for line in block.splitlines()}
    assert {
        "listen 443 ssl;",
        "proxy_http_version 1.1;",
        "proxy_set_header Host $host;",
        "proxy_set_header Upgrade $http_upgrade;",
        'proxy_set_header Connection "upgrade";',
    } <= directives
    bare = [line for line in directives if line and not line.endswith(("{", "}", ";")) and not line.startswith("#")]
    assert bare == []
