"""What was typed in terminals, forgotten: nothing in the file says which of it was."""

from datetime import datetime
from pathlib import Path

import pytest
from prompt_toolkit.history import FileHistory

from segue.changes.forgetting.cleaning import Forgetting
from segue.changes.forgetting.erasure import Cause, ForgettingKind
from segue.core.settings import GatewaySettings
from segue.database.none import Absent
from segue.runtime.forgetting import HISTORY, Cleaner
from segue.runtime.lifecycle.failures import Failures
from segue.runtime.retrying import Patient

NOW = datetime.fromisoformat("2026-05-04 12:00").timestamp()
TYPED = """
# 2026-05-02 09:00:00.000001
+long ago
+in two lines

# nonsense
+nobody knows when

# 2026-05-04 09:00:00.000001
+lately
+# not a time
"""


@pytest.mark.parametrize(
    ("why", "left"),
    [
        (Cause.ASKED, []),
        (Cause.HOST, []),
        (Cause.DELETED, []),
        (Cause.RETENTION, ["typed since", "lately\n# not a time"]),
    ],
)
def test_the_file_is_emptied_but_for_what_retention_leaves(tmp_path: Path, why: Cause, left: list[str]) -> None:
    file = tmp_path / HISTORY
    file.write_text(TYPED)
    file.chmod(0o600)
    FileHistory(str(file)).store_string("typed since")
    cleaner = Cleaner(Patient(Absent()), {}, GatewaySettings(data=str(tmp_path)), lambda: NOW, Failures())
    cleaner._drop_typed(Forgetting(1, ForgettingKind.EXCHANGE, why, NOW, "", (), ""))
    assert list(FileHistory(str(file)).load_history_strings()) == left
    assert file.stat().st_mode & 0o777 == 0o600
    # A terminal that is open writes on.
    FileHistory(str(file)).store_string("and on")
    assert list(FileHistory(str(file)).load_history_strings()) == ["and on", *left]
