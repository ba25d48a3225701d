"""An ACP agent for tests, on the SDK: what it does is said in the prompt's last words, and `recall` tells all it knows.

python -m tests.agents.acp.program FOLDER [forgetful] [forks] [keeps] [locked] [broken] [nobody]

keeps its sessions in FOLDER, unless it is forgetful, and can close them, unless it keeps them open. Locked
for whoever isn't signed in, or broken, it opens none; it may say that nobody is signed in.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import acp
from acp import schema as s
from acp.helpers import (
    plan_entry,
    start_tool_call,
    text_block,
    tool_content,
    tool_diff_content,
    update_agent_message,
    update_agent_message_text,
    update_agent_thought_text,
    update_plan,
    update_tool_call,
)

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
MODELS = ("small", "large")


class Program:
    """The agent."""

    def __init__(self, folder: Path, *, forgetful: bool) -> None:
        self.folder = folder
        self.forgetful = forgetful
        self.told: dict[str, list[str]] = {}
        self.servers: dict[str, list[Any]] = {}
        self.model: dict[str, str] = {}
        self.cancelled: dict[str, asyncio.Event] = {}
        self.listening: dict[str, asyncio.Queue[str]] = {}
        self.client: Any = None

    def on_connect(self, conn: Any) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, *_: Any, **__: Any) -> s.InitializeResponse:
        can = s.AgentCapabilities(
            load_session=not self.forgetful,
            field_meta={"authStatus": {}} if "nobody" in sys.argv else None,
            prompt_capabilities=s.PromptCapabilities(image=True, embedded_context=True),
            mcp_capabilities=s.McpCapabilities(http=True),
            session_capabilities=s.SessionCapabilities(
                fork=s.SessionForkCapabilities() if "forks" in sys.argv else None,
                close=s.SessionCloseCapabilities() if "keeps" not in sys.argv else None,
            ),
        )
        info = s.Implementation(name="program", version="1")
        return s.InitializeResponse(
            protocol_version=protocol_version,
            agent_capabilities=can,
            agent_info=info,
            auth_methods=[s.AuthMethodAgent(id="web", name="Sign in on the web")] if "locked" in sys.argv else [],
            field_meta={"steering": {"supported": True}},
        )

    def options(self, id: str) -> list[Any]:
        choices = [s.SessionConfigSelectOption(value=name, name=name.title()) for name in MODELS]
        now = self.model.get(id, "small")
        return [
            s.SessionConfigOptionSelect(
                id="which", name="Model", category="model", type="select", current_value=now, options=choices
            )
        ]

    async def new_session(self, cwd: str, mcp_servers: Any = None, **_: Any) -> s.NewSessionResponse:
        if "locked" in sys.argv:
            raise acp.RequestError.auth_required()
        if "broken" in sys.argv:
            raise acp.RequestError.internal_error({"details": "no model is set"})
        id = f"{os.getpid()}-{len(self.servers)}"
        self.told[id] = []
        self.servers[id] = mcp_servers or []
        self.log(f"new {id} {cwd}")
        if "nobody" in sys.argv:
            await self.client.ext_notification("auth/status_update", {"authStatus": {"kind": "none"}})
        await self.offer(id)
        modes = [s.SessionMode(id=name, name=name.title()) for name in ("ask", "code")]
        state = s.SessionModeState(available_modes=modes, current_mode_id="ask")
        return s.NewSessionResponse(session_id=id, config_options=self.options(id), modes=state)

    async def load_session(self, cwd: str, session_id: str, mcp_servers: Any = None, **_: Any) -> s.LoadSessionResponse:
        self.servers[session_id] = mcp_servers or []
        file = self.folder / f"{session_id}.json"
        if not file.exists():
            raise acp.RequestError.resource_not_found(session_id)
        if session_id not in self.told:
            # As Claude Code does it: a session that it has open is the newest there is.
            self.told[session_id] = json.loads(file.read_text())
        self.log(f"load {session_id}")
        await self.tell(session_id, update_agent_message_text("what was said before"))
        await self.offer(session_id)
        return s.LoadSessionResponse(config_options=self.options(session_id))

    async def fork_session(self, session_id: str, cwd: str, mcp_servers: Any = None, **_: Any) -> s.ForkSessionResponse:
        id = f"{os.getpid()}-{len(self.servers)}"
        self.told[id] = list(self.told[session_id])
        self.servers[id] = mcp_servers or []
        self.log(f"fork {session_id} {cwd}")
        return s.ForkSessionResponse(session_id=id, config_options=self.options(id))

    async def close_session(self, session_id: str, **_: Any) -> s.CloseSessionResponse:
        del self.told[session_id]
        self.log(f"close {session_id}")
        return s.CloseSessionResponse()

    async def offer(self, id: str) -> None:
        command = s.AvailableCommand(name="shout", description="Say it loud")
        update = s.AvailableCommandsUpdate(session_update="available_commands_update", available_commands=[command])
        await self.tell(id, update)

    async def set_config_option(self, config_id: str, session_id: str, value: Any, **_: Any) -> Any:
        self.model[session_id] = value
        self.log(f"{config_id}={value}")
        return s.SetSessionConfigOptionResponse(config_options=self.options(session_id))

    async def set_session_mode(self, mode_id: str, session_id: str, **_: Any) -> s.SetSessionModeResponse:
        self.log(f"mode={mode_id}")
        return s.SetSessionModeResponse()

    async def cancel(self, session_id: str, **_: Any) -> None:
        self.cancelled[session_id].set()

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, str]:
        """Take in more, if somebody listens; that a prompt runs doesn't mean that it does."""
        if method != "session/steering" or params["sessionId"] not in self.listening:
            return {"outcome": "promptRequired"}
        more = "\n".join(block["text"] for block in params["prompt"])
        self.log(f"steered {more}")
        self.listening[params["sessionId"]].put_nowait(more)
        return {"outcome": "injected"}

    async def tell(self, id: str, update: Any) -> None:
        await self.client.session_update(session_id=id, update=update)

    def log(self, line: str) -> None:
        with (self.folder / "log").open("a") as file:
            file.write(f"{line}\n")

    async def prompt(self, session_id: str, prompt: list[Any], **_more: Any) -> s.PromptResponse:
        self.cancelled[session_id] = asyncio.Event()
        words = [block.text if block.type == "text" else f"[{block.type}]" for block in prompt]
        self.told[session_id].append("\n".join(words))
        self.keep(session_id)
        self.log(f"prompt {words[-1]}")
        first = words[0] if words[0].startswith("/") else words[-1]
        doing, _, rest = first.partition(" ")
        does = getattr(self, f"do_{doing.strip('/')}", None)
        answer = await does(session_id, rest) if does else f"You said: {first}"
        if answer is None:
            return s.PromptResponse(stop_reason="cancelled")
        for piece in answer.split(" "):
            await self.tell(
                session_id, update_agent_message_text(piece if piece == answer.split(" ")[0] else f" {piece}")
            )
        self.told[session_id].append(f"I said: {answer}")
        self.keep(session_id)
        usage = s.Usage(total_tokens=30, input_tokens=10, output_tokens=5, thought_tokens=5, cached_read_tokens=10)
        return s.PromptResponse(stop_reason="end_turn", usage=usage)

    def keep(self, id: str) -> None:
        if not self.forgetful:
            (self.folder / f"{id}.json").write_text(json.dumps(self.told[id]))

    async def do_recall(self, id: str, _: str) -> str:
        (self.folder / "view").write_text("\n".join(self.told[id]))
        return "I looked"

    async def do_all(self, id: str, _: str) -> str:
        return "\n".join(self.told[id])

    async def do_shout(self, _: str, rest: str) -> str:
        return rest.upper()

    async def do_crash(self, id: str, rest: str) -> str:
        if not rest or not (self.folder / rest).exists():
            if rest:
                (self.folder / rest).touch()
            await self.tool(id, "c1")
            sys.stderr.write("the disk is on fire\n")
            sys.stderr.flush()
            await asyncio.sleep(0.05)
            os._exit(3)
        return "I live again"

    async def do_garbage(self, _: str, rest: str) -> str:
        mark = self.folder / "garbage"
        if mark.exists():
            return "Now I mean it"
        mark.touch()
        line = b"x" * (17 * 1024 * 1024) if rest == "long" else b"this is no JSON\n" * 200
        os.set_blocking(1, True)
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()
        await asyncio.sleep(60)
        return "never"

    async def do_long(self, id: str, rest: str) -> str:
        """Say so many letters at once."""
        await self.tell(id, update_agent_message_text("x" * int(rest)))
        return "That is all."

    async def do_log(self, _: str, rest: str) -> str:
        sys.stdout.buffer.write(b"a line of a log\n")
        sys.stdout.buffer.flush()
        return rest

    async def do_wait(self, id: str, _: str) -> str | None:
        await self.tell(id, update_agent_message_text("I begin"))
        await self.cancelled[id].wait()
        self.log("cancelled")
        return None

    async def told_raw(self, id: str, kind: str, **update: Any) -> None:
        """Tell what the library doesn't know."""
        params = {"sessionId": id, "update": {"sessionUpdate": kind, **update}}
        await self.client._conn.send_notification("session/update", params)

    async def do_delegate(self, id: str, rest: str) -> str | None:
        """Let a sub-agent look, and one of that write; with `wait` the first comes to no end."""
        looker, writer = f"{id}/looker", f"{id}/writer"
        await self.told_raw(id, "what_nobody_knows", words="a secret")
        await self.told_raw(id, "subagent_update", sessionId=looker, title="Looker", state={"state": "running"})
        task = [{"type": "text", "text": "Look around"}]
        await self.told_raw(looker, "session_message", messageId="m1", recipientSessionId=looker, content=task)
        await self.tell(looker, update_agent_thought_text("Where?"))
        await self.tell(looker, update_agent_message_text("I look. "))
        if rest == "wait":
            await self.cancelled[id].wait()
            return None
        await self.told_raw(looker, "subagent_update", sessionId=writer, title="Writer", description="Write it down")
        await self.tool(writer, "w1")
        gone = await self.ask_to_remove(writer, "draft.txt")
        await self.tell(writer, update_agent_message_text(f"Written, {gone}."))
        await self.told_raw(looker, "subagent_update", sessionId=writer, state={"state": "idle"})
        await self.tell(looker, update_agent_message_text("There is a cat."))
        await self.told_raw(id, "subagent_update", sessionId=looker, state={"state": "idle"})
        return "They found a cat."

    async def do_later(self, id: str, _: str) -> str:
        """Say more once the prompt is answered."""

        async def more() -> None:
            await asyncio.sleep(0.1)
            await self.tell(id, update_agent_message_text("Now I know."))
            self.log("told later")

        self.more = asyncio.create_task(more())
        return "I will look."

    async def do_listen(self, id: str, rest: str) -> str:
        self.listening[id] = asyncio.Queue()
        self.log("listening")
        heard = [await self.listening[id].get() for _ in range(int(rest or 1))]
        del self.listening[id]
        self.told[id] += heard
        return f"You added: {', '.join(heard)}"

    async def do_hang(self, id: str, rest: str) -> str:
        """Hang; with the name of a file only once, and it says which process does."""
        if rest and (self.folder / rest).exists():
            return "I hang no more"
        if rest:
            (self.folder / "half").write_text(str(os.getpid()))
            (self.folder / "half").rename(self.folder / rest)
        await asyncio.sleep(3600)
        return "never"

    async def do_tool(self, id: str, _: str) -> str:
        if '"Finished then' in self.told[id][-1]:
            return "It is done."
        for title in ("Notes  and a file", '{"gateway":"It is Tuesday', "# Where you are…", "New session - 7", " "):
            await self.tell(id, s.SessionInfoUpdate(session_update="session_info_update", title=title))
        await self.tell(id, update_agent_thought_text("I had better look."))
        entries = [plan_entry("Look", status="completed"), plan_entry("Write", status="in_progress")]
        await self.tell(id, update_plan(entries))
        await self.tool(id, "t1")
        return "Done."

    async def tool(self, id: str, call: str) -> None:
        place = s.ToolCallLocation(path="/there/notes.txt", line=3)
        await self.tell(id, start_tool_call(call, "Write notes", kind="edit", status="pending", locations=[place]))
        diff = tool_diff_content("/there/notes.txt", "new line", "old line")
        content: list[Any] = [diff, tool_content(text_block("written"))]
        await self.tell(id, update_tool_call(call, status="completed", content=content))

    async def do_picture(self, id: str, _: str) -> str:
        picture = s.ImageContentBlock(type="image", data=PIXEL, mime_type="image/png")
        await self.tell(id, update_agent_message(picture))
        return "Here."

    async def do_remove(self, id: str, name: str) -> str:
        return await self.ask_to_remove(id, name)

    async def ask_to_remove(self, id: str, name: str) -> str:
        call = s.ToolCallUpdate(
            tool_call_id=f"r-{name}", title="Remove a file", kind="delete", raw_input={"command": f"rm {name}"}
        )
        options = [
            s.PermissionOption(option_id="y", name="Allow", kind="allow_once"),
            s.PermissionOption(option_id="n", name="Reject", kind="reject_once"),
        ]
        answer = await self.client.request_permission(session_id=id, tool_call=call, options=options)
        chosen = getattr(answer.outcome, "option_id", "cancelled")
        self.log(f"permission {name} {chosen}")
        return f"{name} is gone" if chosen == "y" else f"{name} stays ({chosen})"

    async def do_call(self, id: str, rest: str) -> str:
        """Call a tool of the gateway's, by the one request that this is over MCP."""
        tool, _, arguments = rest.partition(" ")
        [server] = self.servers[id]
        params = {"name": tool, "arguments": json.loads(arguments)}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
        headers = {header.name: header.value for header in server.headers}
        accepts = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        request = Request(server.url, body, headers | accepts)

        def call() -> Any:
            with urlopen(request, timeout=60) as answer:
                return json.load(answer)

        return json.dumps((await asyncio.to_thread(call))["result"]["structuredContent"])

    async def do_form(self, id: str, _: str) -> str:
        schema = s.ElicitationSchema(
            type="object",
            properties={
                "colour": s.ElicitationStringPropertySchema(type="string", title="Colour", enum=["red", "blue"]),
                "count": s.ElicitationIntegerPropertySchema(type="integer", title="How many"),
                "note": s.ElicitationStringPropertySchema(type="string", title="A note"),
            },
            required=["colour", "count"],
        )
        mode = s.ElicitationFormSessionMode(session_id=id, requested_schema=schema)
        answer = await self.client.create_elicitation(message="About the paint", mode=mode)
        return f"{answer.action} {json.dumps(getattr(answer, 'content', None))}"


if __name__ == "__main__":
    program = Program(Path(sys.argv[1]), forgetful="forgetful" in sys.argv)
    asyncio.run(acp.run_agent(program, use_unstable_protocol=True))  # type: ignore[arg-type]
