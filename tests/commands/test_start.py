"""What a command imports before it starts: the list of commands, `heads` and `maps` wait for no slow package."""

import subprocess
import sys

import pytest
from typer.main import get_command

import core.__main__

SLOW = ("pandas", "scipy", "torch", "transformers", "sklearn")
LOADED = f"import sys; print([name for name in {SLOW} if name in sys.modules])"


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["nonsense"]])
def test_the_list_of_commands_imports_no_slow_package(words):
    run = f"import sys; sys.argv = ['core', *{words}]\nfrom core.__main__ import main\ntry:\n    main()\nfinally:\n    "
    done = subprocess.run([sys.executable, "-c", run + LOADED], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr


@pytest.mark.parametrize("command", ["heads", "maps"])
def test_a_command_that_opens_a_checkpoint_imports_no_slow_package_of_its_own(command):
    code = f"import core.commands.{command}\n{LOADED}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_list_of_commands_has_the_first_sentence_of_each_command():
    commands = get_command(core.__main__.app).commands
    firsts = {name: " ".join((found.help or "").split("\n\n")[0].split()) for name, found in commands.items()}
    assert firsts == {name: sentence for name, (_, sentence) in core.__main__.COMMANDS.items()}
