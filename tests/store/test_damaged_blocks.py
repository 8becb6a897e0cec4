"""Files whose blocks are damaged: no backup is made of one, none is put back, and a read of one says so."""

import random

import duckdb
import pytest

from core.errors import StoreError
from core.store import backup, labels
from core.store.backup import damaged_blocks
from core.store.database import Database
from tests.spread import one_in
from tests.store.filling import contents, fill_every_table
from tests.store.labelling import a_map, event

FIRST, BLOCK = 12_288, 262_144
PIECE = (BLOCK - 8) // 64 // 8 * 8  # bytes of one of the 64 parts of a block that lists lie in
DAMAGES = ("flipped bits", "cut", "a block of zeros", "other bytes")


def damaged(good: bytes, how: str, draw: random.Random) -> bytes:
    """`good` with one damage behind the headings, which DuckDB itself looks at when it opens a file."""
    bad, start = bytearray(good), draw.randrange(FIRST, len(good) - 4096)
    if how == "flipped bits":
        bad[start] ^= 1 << draw.randrange(8)
    elif how == "cut":
        return good[:start]
    elif how == "a block of zeros":
        first = start - (start - FIRST) % BLOCK
        bad[first : first + BLOCK] = bytes(BLOCK)
    else:
        bad[start : start + 4096] = draw.randbytes(4096)
    return bytes(bad)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A backup with two rows in every table; none of its blocks is free."""
    folder = tmp_path_factory.mktemp("sound")
    with Database(folder / "atlas.duckdb") as db:
        fill_every_table(db)
        backup.back_up(db, folder / "copy.duckdb")
    return (folder / "copy.duckdb").read_bytes()


def rows_in(path):
    """Every row of every table."""
    with Database(path) as db:
        names = [name for (name,) in db.cursor().execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        return contents(db, names)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", one_in(9, range(18)))
@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_backup_is_not_put_back(sound, how, seed, tmp_path):
    (tmp_path / "copy.duckdb").write_bytes(damaged(sound, how, random.Random(f"{how} {seed}")))  # noqa: S311
    try:
        backup.restore(tmp_path / "copy.duckdb", tmp_path / "atlas.duckdb")
    except StoreError as refused:
        error = refused
    else:  # a block that no row, index or list lies in: what is put back must be whole
        (tmp_path / "sound.duckdb").write_bytes(sound)
        assert rows_in(tmp_path / "atlas.duckdb") == rows_in(tmp_path / "sound.duckdb")
        return
    assert "Only an undamaged backup can be restored" in str(error) or "A backup must be a readable DuckDB" in str(
        error
    )
    assert "copy.duckdb is damaged" in str(error) or "copy.duckdb (" in str(error)
    assert [file.name for file in tmp_path.iterdir()] == ["copy.duckdb"]


@pytest.mark.parametrize("how", ["flipped bits", "a block of zeros", "other bytes"])
def test_a_damaged_database_is_not_backed_up_and_says_so_where_it_is_read(sound, how, tmp_path):
    (tmp_path / "atlas.duckdb").write_bytes(damaged(sound, how, random.Random(how)))  # noqa: S311
    with Database(tmp_path / "atlas.duckdb") as db:
        with pytest.raises(StoreError, match="damaged"):
            backup.back_up(db, tmp_path / "copy.duckdb")
        assert not (tmp_path / "copy.duckdb").exists()
        assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.thorough
def test_a_damaged_block_met_by_a_read_or_a_write_is_a_sentence(sound, tmp_path):
    """Blocks of tables, of their indexes and of the list of both; DuckDB raises a bare error for them."""
    met = 0
    for number in range(0, (len(sound) - FIRST) // BLOCK, 4):
        bad = bytearray(sound)
        bad[FIRST + BLOCK * number + 100] ^= 1
        path = tmp_path / f"{number}.duckdb"
        path.write_bytes(bad)
        try:
            with Database(path) as db:
                names = [name for (name,) in db.cursor().execute("SELECT table_name FROM duckdb_tables()").fetchall()]
                contents(db, names)
                with db.write() as cursor:
                    for name in names:
                        cursor.execute(f'DELETE FROM "{name}"')  # noqa: S608 - the file's own names
        except StoreError as error:
            met += "damaged" in str(error)
        path.unlink(missing_ok=True)
    assert met > 6


def with_free_blocks(path) -> int:
    with Database(path) as db:
        with db.write() as cursor:
            cursor.execute("INSERT INTO study_row SELECT 'r', range, '{\"a\": ' || random() || '}' FROM range(100000)")
        db.fold()
        fill_every_table(db)
        with db.write() as cursor:
            cursor.execute("DELETE FROM study_row WHERE run = 'r'")
        db.fold()
    with duckdb.connect(str(path)) as connection:
        return connection.execute("SELECT free_blocks FROM pragma_database_size()").fetchall()[0][0]


@pytest.mark.thorough
def test_what_lies_in_a_free_block_refuses_no_sound_backup(tmp_path):
    """As a kill inside a fold leaves it: half of a block that no heading names yet."""
    path = tmp_path / "atlas.duckdb"
    free = with_free_blocks(path)
    assert free > 3
    good = path.read_bytes()
    assert damaged_blocks(path, free) == []
    refused = []
    for number in range((len(good) - FIRST) // BLOCK):
        bad = bytearray(good)
        bad[FIRST + BLOCK * number + BLOCK // 2 : FIRST + BLOCK * (number + 1)] = bytes(BLOCK // 2 - 1) + b"\1"
        path.write_bytes(bad)
        refused += damaged_blocks(path, free)
    assert len(refused) == (len(good) - FIRST) // BLOCK - free - 1  # the last has the list of the free ones
    assert damaged_blocks(path, free + 7) == []  # a list of free blocks that DuckDB does not have: nothing is said


@pytest.mark.thorough
def test_a_list_of_free_blocks_that_leads_back_to_itself_ends(tmp_path):
    path = tmp_path / "atlas.duckdb"
    free = with_free_blocks(path)
    bad = bytearray(path.read_bytes())
    pointers = [int.from_bytes(bad[start + 24 : start + 32], "little") for start in (4096, 8192)]
    for pointer in pointers:
        place = FIRST + (pointer & (2**56 - 1)) * BLOCK + 8 + (pointer >> 56) * PIECE
        if place + PIECE <= len(bad):
            bad[place : place + 8] = pointer.to_bytes(8, "little")
    path.write_bytes(bad)
    assert damaged_blocks(path, free) == []  # unreadable: nothing is said of any block


@pytest.mark.thorough
def test_a_backup_with_a_log_and_free_blocks_is_sound(tmp_path):
    path = tmp_path / "atlas.duckdb"
    with_free_blocks(path)
    with Database(path) as db:
        labels.store_maps(db, [a_map("m9")])
        labels.record_events(db, [event(1, "m9", batch="late")])
        backup.back_up(db, tmp_path / "copy.duckdb")
    assert backup.restore(tmp_path / "copy.duckdb", tmp_path / "again.duckdb") == 3
