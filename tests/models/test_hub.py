"""Checkpoints from a hub, on loopback: progress, resuming, revisions, and one sentence for each way it fails."""

import errno
import hashlib
import re
import shutil
from contextlib import contextmanager

import pytest

from core.errors import CheckpointError
from core.models.hub import DownloadStoppedError, said_of
from core.models.opening import locate, open_checkpoint
from tests.capture.conftest import tiny
from tests.models.loopback_hub import serving_hub
from tests.mounts import needs_mounts, with_read_only

NAME, WEIGHTS = "someone/tiny-bert", "model.safetensors"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two revisions of one checkpoint."""
    kept = {}
    for revision in ("main", "v2"):
        folder = tmp_path_factory.mktemp("hub") / revision
        checkpoint = tiny("bert")
        if revision == "v2":
            checkpoint.model.embeddings.word_embeddings.weight.data[0] += 1
        checkpoint.model.save_pretrained(folder)
        checkpoint.tokenizer.save_pretrained(folder)
        kept[revision] = folder
    return kept


@contextmanager
def on_hub(served, cache, monkeypatch):
    """The hub's library asks `served`, and keeps what comes in a folder of the test."""
    import huggingface_hub.constants as constants
    from huggingface_hub.utils import _http

    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", served.address)
    template = served.address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 1)
    monkeypatch.setattr(constants, "HF_HUB_ETAG_TIMEOUT", 1)
    monkeypatch.setattr("time.sleep", lambda _: None)  # the library waits before it tries again
    _http.close_session()
    yield
    _http.close_session()


@pytest.fixture
def hub(folders, tmp_path, monkeypatch):
    with serving_hub({NAME: folders}) as served, on_hub(served, tmp_path, monkeypatch):
        yield served


def test_a_checkpoint_is_downloaded_once_with_its_progress(hub, folders):
    seen = []
    locate(NAME, on_progress=lambda share, doing: seen.append(share))
    opened = open_checkpoint(NAME)
    assert opened.weights_hash == open_checkpoint(str(folders["main"])).weights_hash
    assert seen == sorted(seen), seen
    assert 0 <= seen[0] <= seen[-1] == 1, seen
    open_checkpoint(NAME)
    assert hub.ranges(WEIGHTS) == [None]


def test_a_revision_has_weights_of_its_own_and_an_unknown_one_is_named(hub):
    first, second = open_checkpoint(NAME), open_checkpoint(NAME, revision="v2")
    assert first.weights_hash != second.weights_hash
    assert open_checkpoint(f"{NAME}@v2").weights_hash == second.weights_hash  # as studies are told one
    with pytest.raises(CheckpointError, match=r'no revision "v3"\. Leave the revision empty'):
        locate(NAME, revision="v3")
    with pytest.raises(CheckpointError, match="must be a folder, a hub ID or a bundled name"):
        locate(f"{NAME}@../main")


def test_a_download_that_was_cut_goes_on_where_it_stopped(hub, folders, monkeypatch):
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1000)  # 10 MB: what has come since the last is lost
    hub.cut[WEIGHTS] = 5000
    assert (locate(NAME) / WEIGHTS).read_bytes() == (folders["main"] / WEIGHTS).read_bytes()
    assert hub.ranges(WEIGHTS) == [None, "bytes=5000-"]


def test_what_was_downloaded_opens_when_the_hub_is_gone(hub, monkeypatch):
    import huggingface_hub.constants as constants

    locate(NAME)
    hub.status["/"] = 500
    assert (locate(NAME) / WEIGHTS).is_file()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert (locate(NAME) / WEIGHTS).is_file()
    with pytest.raises(CheckpointError, match=r"not on this machine, and the hub cannot be reached.* Connect to a net"):
        locate("someone/other")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, "no public checkpoint"),
        (403, "no public checkpoint"),
        (404, "no public checkpoint"),
        (429, "after too many requests .*429.*Wait some minutes"),
        (500, "internal error .*500"),
        (503, "internal error .*503"),
    ],
)
def test_what_the_hub_refuses_is_told_with_what_to_do(hub, status, said):
    hub.status[f"api/models/{NAME}"] = status
    with pytest.raises(CheckpointError, match=said):
        locate(NAME)


def test_a_name_that_the_hub_does_not_know(hub):
    with pytest.raises(CheckpointError, match=r'no public checkpoint "someone/else"\. Check the spelling'):
        locate("someone/else")


def test_a_file_that_is_listed_and_missing_is_named(hub):
    hub.missing.add("config.json")
    with pytest.raises(CheckpointError, match=r"lists the file config\.json .* does not have it"):
        locate(NAME)


def test_weights_that_are_not_those_that_the_hub_names_are_thrown_away(hub, folders):
    good = (folders["main"] / WEIGHTS).read_bytes()
    hub.other[WEIGHTS] = good[:-1] + bytes([good[-1] ^ 1])
    with pytest.raises(
        CheckpointError, match=r"model\.safetensors .* was deleted, because its hash differs from the hash on the hub"
    ):
        locate(NAME)
    hub.other.clear()
    assert (locate(NAME) / WEIGHTS).read_bytes() == good


def test_a_length_that_is_not_true_is_said(hub, folders):
    true = (folders["main"] / WEIGHTS).stat().st_size
    hub.says[WEIGHTS] = true + 1000  # waits for more than there is
    with pytest.raises(CheckpointError, match="broke off"):
        locate(NAME)
    hub.says[WEIGHTS] = true - 1000  # ends before the end, and the hash says so
    with pytest.raises(CheckpointError, match=r"does not have the size|its hash differs from"):
        locate(NAME)


def partial(tmp_path):
    """How many bytes of the weights are kept for the next time."""
    return sum(file.stat().st_size for file in tmp_path.rglob("*.partial"))


def test_a_download_that_was_stopped_goes_on_where_it_stopped(hub, folders, tmp_path, monkeypatch):
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1000)
    whole = (folders["main"] / WEIGHTS).read_bytes()

    def stop_at_half(share, doing):
        if share > 0.5:
            raise DownloadStoppedError

    with pytest.raises(DownloadStoppedError):
        locate(NAME, on_progress=stop_at_half)
    kept = partial(tmp_path)
    assert 0.3 * len(whole) < kept < len(whole)
    seen = []
    assert (locate(NAME, on_progress=lambda share, doing: seen.append(share)) / WEIGHTS).read_bytes() == whole
    assert hub.ranges(WEIGHTS) == [None, f"bytes={kept}-"]
    assert seen[0] > 0.3, "the bar begins with what is there"
    assert partial(tmp_path) == 0


def test_what_was_kept_of_other_weights_is_thrown_away_when_the_rest_has_come(hub, folders, tmp_path):
    """Two programs that wrote into one file, or a disk that lost blocks: the hash says so; the next try is whole."""
    name = hashlib.sha256((folders["main"] / WEIGHTS).read_bytes()).hexdigest()
    kept = tmp_path / "cache" / f"models--{NAME.replace('/', '--')}" / "blobs" / f"{name}.partial"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"x" * 5000)
    with pytest.raises(CheckpointError, match="its hash differs from"):
        locate(NAME)
    assert (locate(NAME) / WEIGHTS).read_bytes() == (folders["main"] / WEIGHTS).read_bytes()


def test_a_disk_without_room_is_said_before_anything_arrives(hub, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda place: shutil._ntuple_diskusage(10**9, 10**9 - 1000, 1000))
    with pytest.raises(CheckpointError, match=r"has only 0 MB free\. Delete files there, or set HF_HOME"):
        locate(NAME)
    assert hub.ranges(WEIGHTS) == []


@pytest.mark.parametrize(
    ("number", "said"), [(errno.ENOSPC, "is full.* continues where it stopped"), (errno.EROFS, "may not write to")]
)
def test_what_the_disk_refuses_is_one_sentence(number, said):
    assert re.search(said, said_of(OSError(number, "no"), NAME, None))


@pytest.mark.thorough
@needs_mounts
def test_a_cache_that_is_mounted_read_only_opens_what_it_has_and_takes_nothing_new(hub, folders, tmp_path):
    locate(NAME)
    code = """
import sys
from core.errors import CheckpointError
from core.models.hub import download
print((download(sys.argv[1], None) / "model.safetensors").is_file())
try:
    download(sys.argv[2], None)
except CheckpointError as error:
    print(error)
"""
    hub.repositories["someone/new"] = folders
    said = with_read_only(
        tmp_path / "cache", code, NAME, "someone/new",
        HF_ENDPOINT=hub.address, HF_HUB_CACHE=str(tmp_path / "cache"), HF_HUB_OFFLINE="0",
    )  # fmt: skip
    there, refused = said.splitlines()
    assert there == "True"
    assert refused.startswith(f'"someone/new" cannot be stored in {tmp_path / "cache"}, which this program may not')
    assert hub.ranges(WEIGHTS) == [None]


def test_a_hub_that_stalls_is_left_after_its_time(hub, folders, monkeypatch):
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.3)
    hub.stalls.add(WEIGHTS)
    with pytest.raises(CheckpointError, match="broke off"):
        locate(NAME)
    hub.stalls.clear()
    assert (locate(NAME) / WEIGHTS).read_bytes() == (folders["main"] / WEIGHTS).read_bytes()
