"""Without its packages the command line says what to install."""

from __future__ import annotations

import sys

import pytest

from tamis.cli import main


@pytest.mark.parametrize("package", ["rich", "typer"])
def test_a_missing_package_is_named(
    package: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [m for m in sys.modules if m.startswith("tamis.cli.") or m.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert capsys.readouterr().err == f"[MISSING_PACKAGE] The command line needs {package}. pip install 'tamis[cli]'\n"
