"""`segue mcp`: the running gateway's tools on standard input and output, for programs that speak MCP."""

import os
from importlib import import_module

import click
import httpx2

from segue.cli.gateway import SOCKET
from segue.cli.output import awaited
from segue.config import data_folder
from segue.errors import Invalid, NotInstalled
from segue.runtime.mcp.door import PATH, installed
from segue.runtime.tools.lent import TOKEN, URL
from segue.runtime.windows.sign_in import token_in


@click.command()
@awaited
async def command() -> None:
    """Serve your sessions as tools to a program that speaks MCP, on standard input and output.

    It uses the gateway that runs here (`segue serve`), as you. With SEGUE_TOKEN in the environment it acts for the
    token's person, and with SEGUE_MCP_URL it uses a gateway elsewhere.
    """
    if not installed():
        raise NotInstalled("segue mcp", "the mcp library", "mcp")
    folder, url = data_folder(os.environ), os.environ.get(URL, "")
    if not (os.environ.get(TOKEN) or folder.is_dir()):
        raise Invalid("data folder", f"{folder} isn't there", "Run `segue serve` first, or set SEGUE_HOME.")
    shown = os.environ.get(TOKEN) or token_in(folder)

    def transport() -> httpx2.AsyncHTTPTransport | None:
        # A socket in a private folder needs no TLS, so skip loading the certificate authorities.
        return None if url else httpx2.AsyncHTTPTransport(uds=str(folder / SOCKET), verify=False)

    bridge = import_module("segue.runtime.mcp.stdio").bridge
    await bridge(url or f"http://localhost{PATH}", {"Authorization": f"Bearer {shown}"}, transport)
