"""What a program does to the files of a folder, call by call, and the folder as a kill after any of them leaves it.

strace (Debian's package) writes down each system call with the bytes that it wrote. SIGKILL ends a program between two
of them, or inside a long write, so the folder after each call, and after half of each write, is what a kill leaves.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.pages.browsing import PROJECT

TRACED = (
    "openat,write,pwrite64,writev,pwritev,pwritev2,ftruncate,truncate,fallocate,sendfile,copy_file_range,lseek,"
    "rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,link,linkat,fsync,fdatasync"
)
_LINE = re.compile(r"^(?P<thread>\d+) +(?P<text>.*)$")
_CALL = re.compile(r"^(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+)")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_COPY = re.compile(r"^\d+<[^>]*>, \d+<(?P<source>[^>]*)>, \[(?P<start>\d+)\]")
_FILE = re.compile(r"^(\d+)<((?:\\x[0-9a-f]{2})*)>")


@dataclass(frozen=True)
class FileCall:
    """One call that changed a file below the folder, or printed a line.

    Attributes:
        name: of the system call, "print" for what went to standard output.
        path: the file, relative to the folder; for a rename or a link, the old name.
        other: the new name of a rename or a link.
        offset: where bytes went; of a truncation, the new length.
        content: the bytes.
    """

    name: str
    path: str = ""
    other: str = ""
    offset: int = 0
    content: bytes = b""

    def below(self, name: str) -> "FileCall | None":
        """The call as seen from the folder `name`; None where it was elsewhere. A printed line names its folder."""
        if self.name == "print":
            return self if name in self.content.decode() else None
        inside = f"{name}/"
        if not self.path.startswith(inside):
            return None
        return replace(self, path=self.path.removeprefix(inside), other=self.other.removeprefix(inside))

    @property
    def halves(self) -> "list[FileCall]":
        """The call as a kill inside it leaves it, then whole."""
        if self.name != "write" or len(self.content) < 2:
            return [self]
        half = replace(self, content=self.content[: len(self.content) // 2])
        return [half, self]


@dataclass
class Folder:
    """Files and folders below a folder, by relative name."""

    files: dict[str, bytes] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    linked: set[tuple[str, str]] = field(default_factory=set, compare=False)  # two names of one file

    @classmethod
    def read(cls, folder: Path) -> "Folder":
        """The folder as it lies on the disk."""
        below = sorted(folder.rglob("*"))
        return cls(
            {str(path.relative_to(folder)): path.read_bytes() for path in below if path.is_file()},
            {str(path.relative_to(folder)) for path in below if path.is_dir()},
        )

    def write(self, folder: Path) -> Path:
        """Put everything into a new `folder`."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name in sorted(self.folders):
            (folder / name).mkdir(parents=True, exist_ok=True)
        for name, content in self.files.items():
            (folder / name).write_bytes(content)
        return folder

    def below(self, name: str) -> "Folder":
        """The folder `name` in this one."""
        inside = f"{name}/"
        return Folder(
            {file.removeprefix(inside): content for file, content in self.files.items() if file.startswith(inside)},
            {each.removeprefix(inside) for each in self.folders if each.startswith(inside)},
        )

    def apply(self, call: FileCall) -> None:
        """Change what `call` changed."""
        before = self.files.get(call.path, b"")
        if call.name == "write":
            start = before.ljust(call.offset, b"\0")
            self.files[call.path] = start[: call.offset] + call.content + start[call.offset + len(call.content) :]
        elif call.name == "truncate":
            self.files[call.path] = before[: call.offset].ljust(call.offset, b"\0")
        elif call.name == "rename":
            if (call.path, call.other) not in self.linked:  # rename(2) leaves two names of one file as they are
                self.files[call.other] = self.files.pop(call.path)
        elif call.name == "link":
            self.files[call.other] = before
            self.linked.add((call.path, call.other))
        elif call.name == "unlink":
            self.files.pop(call.path)
        elif call.name == "mkdir":
            self.folders.add(call.path)
        elif call.name == "rmdir":
            self.folders.discard(call.path)


def traced(arguments: list[str], folder: Path) -> list[FileCall]:
    """Run Python with `arguments` and return what it did below `folder`.

    The calls, applied to the folder as it was, must give the folder as it is: asserted, so that no call is missed.
    """
    before, log = Folder.read(folder), folder.with_name(f"{folder.name}.strace")
    command = ["strace", "-f", "-y", "-xx", "-s", "1000000000", "--seccomp-bpf", "-o", str(log), "-e", TRACED]
    done = subprocess.run(
        [*command, sys.executable, *arguments], cwd=PROJECT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    calls = list(_Reading(folder, before).calls(log))
    log.unlink()
    for call in calls:
        before.apply(call)
    after = Folder.read(folder)
    assert before.files.keys() == after.files.keys()
    assert before == after
    return calls


class _Reading:
    """Reads strace's lines. positions: where the next write of each open file goes; None appends."""

    def __init__(self, folder: Path, before: Folder):
        self.folder = folder.resolve()
        self.positions: dict[int, int | None] = {}
        self.contents = Folder(dict(before.files), set(before.folders), set(before.linked))

    def calls(self, log: Path) -> Iterator[FileCall]:
        begun: dict[str, str] = {}
        for line in log.read_text(encoding="ascii").splitlines():
            thread, text = _LINE.match(line).groups()  # type: ignore[union-attr]
            if text.endswith("<unfinished ...>"):
                begun[thread] = text.removesuffix("<unfinished ...>").rstrip()
                continue
            if text.startswith("<... "):
                text = begun.pop(thread) + text.split(" resumed>", 1)[1]
            found = _CALL.match(text)
            if found and not found["result"].startswith("-"):
                for call in self._read(found["name"], found["arguments"], int(found["result"])):
                    self.contents.apply(call)
                    yield call

    def _read(self, name: str, arguments: str, result: int) -> list[FileCall]:
        texts = [bytes.fromhex(text.replace("\\x", "")) for text in _TEXT.findall(arguments)]
        if name == "openat":
            return self._opened(arguments, self._inside(texts[0]), result)
        if _FILE.match(arguments):
            return self._of_file(name, arguments, texts, result)
        inside = [self._inside(text) for text in texts]
        if not any(inside):
            return []
        kind = {"renameat": "rename", "renameat2": "rename", "linkat": "link", "mkdirat": "mkdir"}.get(name, name)
        if name == "unlinkat":
            kind = "rmdir" if "AT_REMOVEDIR" in arguments else "unlink"
        assert kind in {"rename", "link", "unlink", "mkdir", "rmdir"}, (name, arguments[:200])
        return [FileCall(kind, *inside)]

    def _opened(self, arguments: str, path: str, file: int) -> list[FileCall]:
        self.positions[file] = None if "O_APPEND" in arguments else 0
        writes = "O_WRONLY" in arguments or "O_RDWR" in arguments
        if path and writes and ("O_TRUNC" in arguments or path not in self.contents.files) and "O_CREAT" in arguments:
            return [FileCall("truncate", path)]
        return []

    def _of_file(self, name: str, arguments: str, texts: list[bytes], result: int) -> list[FileCall]:
        number, hexed = _FILE.match(arguments).groups()  # type: ignore[union-attr]
        file, path = int(number), self._inside(bytes.fromhex(hexed.replace("\\x", "")))
        if name == "lseek":
            self.positions[file] = result if self.positions.get(file, 0) is not None else None
        if name == "write" and file == 1:
            return [FileCall("print", content=texts[0])]
        if not path or name in {"lseek", "fsync", "fdatasync"}:
            return []
        if name in {"write", "sendfile", "copy_file_range"}:
            offset = self.positions.get(file, 0)
            offset = len(self.contents.files[path]) if offset is None else offset
            if self.positions.get(file, 0) is not None:
                self.positions[file] = offset + result
            content = texts[0] if texts else self._copied(arguments)
            return [FileCall("write", path, offset=offset, content=content[:result])]
        if name == "pwrite64":
            return [FileCall("write", path, offset=int(arguments.rsplit(", ", 1)[1]), content=texts[0][:result])]
        assert name == "ftruncate", (name, arguments[:200])
        return [FileCall("truncate", path, offset=int(arguments.rsplit(", ", 1)[1]))]

    def _copied(self, arguments: str) -> bytes:
        """What a call copied from another file of the folder."""
        found = _COPY.match(arguments)
        assert found, arguments[:200]
        source = self._inside(bytes.fromhex(found["source"].replace("\\x", "")))
        return self.contents.files[source][int(found["start"]) :]

    def _inside(self, path: bytes) -> str:
        """The path relative to the folder, or ""."""
        found = Path(path.decode("utf-8", "surrogateescape"))
        return str(found.relative_to(self.folder)) if found.is_relative_to(self.folder) else ""
