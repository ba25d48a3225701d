"""The model and the mode of an ACP agent, chosen by its own config options: `/model`, `/mode`."""

import logging
from collections.abc import Mapping

from acp.exceptions import RequestError
from acp.schema import SessionConfigOptionSelect, SessionConfigSelectGroup

from segue.agents.acp.process import Process
from segue.agents.acp.session import AcpSession

log = logging.getLogger(__name__)


class Options:
    """The config options of one session of the agent's."""

    WORDS = ("model", "mode")
    """The commands that choose one."""

    def __init__(self, process: Process, session: AcpSession) -> None:
        self._process = process
        self._session = session

    @property
    def model(self) -> str:
        """The model that answers, as far as the agent tells it."""
        option = self._option("model")
        return option.current_value if option is not None else ""

    def meant(self, said: str) -> tuple[str, str] | None:
        """The option that a message is to choose, and what; None if it is for the agent itself."""
        word, _, value = said.removeprefix("/").partition(" ")
        if not said.startswith("/") or word.casefold() not in self.WORDS:
            return None
        word = word.casefold()
        return None if not self._choices(word) and word in self._session.commands else (word, value.strip())

    def told(self, word: str, value: str = "") -> str:
        """The words about what there is to choose from."""
        choices = self._choices(word)
        if not choices:
            return f"{self._process.name} lets nobody choose its {word}."
        said = f"There is no {word} “{value}”. " if value else ""
        lines = [f"- {id}{f' ({name})' if name != id else ''}" for id, name in choices.items()]
        return "\n".join(
            [f"{said}The {word} is {self._now(word)}. The host chooses another by /{word} NAME:", "", *lines]
        )

    async def choose(self, word: str, value: str) -> tuple[dict[str, str], str]:
        """Choose it, or say what there is; returns what was chosen, and the words about it."""
        choices = self._choices(word).items()
        found = next(((id, name) for id, name in choices if value.casefold() in (id.casefold(), name.casefold())), None)
        if found is None:
            return {}, self.told(word, value)
        await self._set(word, found[0])
        return {word: found[0]}, f"The {word} is {found[1]} from here on."

    async def restore(self, chosen: Mapping[str, str]) -> None:
        """Choose again what people chose, in a session that was just opened."""
        for word, value in chosen.items():
            if value in self._choices(word) and value != self._now(word):
                try:
                    await self._set(word, value)
                except RequestError as error:
                    log.warning("%s takes the %s %s no more: %s", self._process.name, word, value, error)

    async def _set(self, word: str, value: str) -> None:
        connection, session = self._process.connection, self._session
        option = self._option(word)
        if option is not None:
            done = await connection.set_config_option(option.id, session.id, value)
            session.options = list(done.config_options or session.options)
        elif session.modes is not None:
            await connection.set_session_mode(session.id, value)
            session.modes = session.modes.model_copy(update={"current_mode_id": value})

    def _now(self, word: str) -> str:
        option, modes = self._option(word), self._session.modes
        return option.current_value if option is not None else modes.current_mode_id if modes is not None else ""

    def _option(self, word: str) -> SessionConfigOptionSelect | None:
        selects = [one for one in self._session.options if isinstance(one, SessionConfigOptionSelect)]
        return next((one for one in selects if word in (one.category, one.id)), None)

    def _choices(self, word: str) -> dict[str, str]:
        """The values that can be chosen, with their names."""
        option, modes = self._option(word), self._session.modes
        if option is not None:
            groups = [[one] if not isinstance(one, SessionConfigSelectGroup) else one.options for one in option.options]
            return {one.value: one.name for group in groups for one in group}
        if word == "mode" and modes is not None:
            return {mode.id: mode.name for mode in modes.available_modes}
        return {}
