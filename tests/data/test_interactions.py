"""Logs of events from files of several kinds, good and bad."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from random import Random

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from real_data import needs_data
from slimrnn.data import DataError, find_file
from slimrnn.data.interactions import Columns, Interactions, interactions_from, read_interactions
from slimrnn.data.movielens import read_movielens, read_titles
from slimrnn.data.tables import Table

TABLE = "user,item,timestamp\nb,10,5\na,9,3\na,10,1\nb,9,5\n"
Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    return written


def events(log: Interactions) -> list[tuple[str, str, float | None]]:
    """(user, item, time), in the log's order."""
    times = [None] * len(log.items) if log.times is None else log.times.tolist()
    return [(log.user_ids[u], log.item_ids[i], t) for u, i, t in zip(log.users, log.items, times, strict=True)]


def test_events_are_sorted_by_user_and_time_and_stay_in_order_at_one_time(write: Write) -> None:
    log = read_interactions(write("log.csv", TABLE))
    assert events(log) == [("a", "10", 1), ("a", "9", 3), ("b", "10", 5), ("b", "9", 5)]
    assert log.starts.tolist() == [0, 2, 4]
    assert log.item_ids == ("9", "10")  # sorted as numbers


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("log.tsv", TABLE.replace(",", "\t")),
        ("log.csv.gz", TABLE),
        ("log.csv", TABLE.replace(",", ";")),
        ("log.csv", TABLE.replace(",", "\t")),
        ("log.csv", "\ufeff" + TABLE + "\n\r\n"),
        ("log.dat", "b::10::4.5::5\na::9::1::3\na::10::2::1\nb::9::3::5\n"),
        ("log.csv", TABLE.replace("user,", "rating,userId,").replace("\nb", "\n1,b").replace("\na", "\n1,a")),
        (
            "dates.csv",
            TABLE.replace(",5", ",1970-01-01 00:00:05")
            .replace(",3", ",1970-01-01T00:00:03")
            .replace(",1\n", ",1970-01-01 00:00:01\n"),
        ),
    ],
)
def test_other_forms_of_the_same_log(write: Write, name: str, text: str) -> None:
    assert events(read_interactions(write(name, text))) == events(read_interactions(write("plain.csv", TABLE)))


def test_parquet_with_types_of_its_own(tmp_path: Path) -> None:
    frame = pl.DataFrame({"who": list("baab"), "item": [10, 9, 10, 9], "when": [5, 3, 1, 5], "page": list("xyxx")})
    dated = frame.with_columns(pl.from_epoch((pl.col("when") * 1000).cast(pl.Int64), time_unit="ms").alias("when"))
    for each in (frame, dated):
        each.write_parquet(tmp_path / "log.parquet")
        log = read_interactions(tmp_path / "log.parquet", Columns(user="who", time="when", page="page"))
        assert events(log) == [("a", "10", 1), ("a", "9", 3), ("b", "10", 5), ("b", "9", 5)]
        assert log.pages is not None
        assert [log.page_ids[page] for page in log.pages] == ["x", "y", "x", "x"]


def test_rows_in_time_order_need_no_times(write: Write) -> None:
    expected = [("1", "7", None), ("1", "5", None), ("2", "5", None)]
    assert events(read_interactions(write("log.txt", "1 7\n2 5\n1 5\n"))) == expected
    log = read_interactions(write("log.csv", "user,item\n1,7\n2,5\n1,5\n"), Columns(in_order=True))
    assert events(log) == expected


def test_repeated_events_are_counted_and_dropped(write: Write) -> None:
    path = write("log.csv", TABLE + "a,9,3\nb,9,6\na,9,3\n")
    with pytest.warns(UserWarning, match=r"log\.csv: dropped 2 events that repeat the user, item and time of another"):
        log = read_interactions(path)
    assert log.duplicates == 2
    assert events(log) == [("a", "10", 1), ("a", "9", 3), ("b", "10", 5), ("b", "9", 5), ("b", "9", 6)]


def test_ids_are_texts(write: Write) -> None:
    log = read_interactions(write("log.csv", "user,item,timestamp\n1,07,1\n1,7,2\n1,x,3\n"))
    assert log.item_ids == ("07", "7", "x")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("log.csv", TABLE.replace("item", "film"), r"column item or .* got user, film, timestamp: --item-column"),
        ("log.csv", TABLE.replace("timestamp", "at"), r"--time-column says which, or --in-order where"),
        ("log.csv", TABLE.replace("a,9,3", "a,,3"), r"no item in line 3 \('a,,3'\) \(1 such row\): --skip-incomplete"),
        ("log.csv", TABLE.replace("a,9,3", "a,9,soon"), r"dates as timestamp in .* 'soon' in line 3 \('a,9,soon'\)"),
        ("log.csv", TABLE.replace("a,9,3", "a,9,inf"), "finite numbers as timestamp in .*, got 'inf' in line 3"),
        ("log.csv", TABLE.replace("b,10,5", "b,10,soon"), "numbers or dates as timestamp in .* got 'soon' in line 2"),
        ("log.csv", "", r"expected a log of events, got .*log\.csv, which is empty"),
        ("log.csv", " \n", "expected a log of events, got .*log.csv, which is empty"),
        ("log.csv", "user,item,timestamp\n", "expected events in .*, got none"),
        ("log.csv", TABLE + "a,1,2,3,4\n", "expected 3 values in line 6 of .*log.csv, got 5: 'a,1,2,3,4'"),
        ("log.csv", "\n\n" + TABLE.replace("a,9,3", "a,9,soon"), "got 'soon' in line 5"),
        ("log.csv", TABLE.replace("b,10,5", '"b\nc",10,5\n').replace("a,9,3", "a,9"), r"got no user in line 4 "),
        ("log.csv", TABLE.replace("b,10,5", '"b\nc",10,5').replace("a,9,3", "a,9"), r"timestamp in line 4 \('a,9'\)"),
        ("log.csv", TABLE.replace(",", ";").replace("9;3", "9;3,5"), "got '3,5' in line 3"),
        ("log.tsv", TABLE, "expected a column user or .* got user,item,timestamp"),
        ("log.json", "{}", r"expected a log in \.csv, \.tsv, \.parquet, \.txt or \.dat, got"),
        ("log.dat", "1::2::3\n", "expected columns of user, item, rating, timestamp in line 1 of .*, got 3"),
        ("log.parquet", "no table", "expected b'PAR1' at both ends of .*log.parquet, got b'no t' and b'able'"),
    ],
)  # fmt: skip
def test_bad_files_are_refused(write: Write, name: str, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_interactions(write(name, text))


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("user", [[1], [2]], r"expected texts or numbers as user in .*, got List\(Int64\)"),
        ("item", [b"\xff", b"a"], "expected texts or numbers as item in .*, got Binary"),
        ("timestamp", [[1], [2]], r"expected numbers or dates as timestamp in .*, got List\(Int64\)"),
        ("timestamp", [True, False], "expected numbers or dates as timestamp in .*, got Boolean"),
        ("timestamp", [timedelta(1), timedelta(2)], "expected numbers or dates as timestamp in .*, got Duration"),
        ("timestamp", ["soon", "later"], "expected numbers or dates as timestamp in .*, got 'soon' in row 1"),
        ("user", [1.0, float("nan")], "got no user in row 2"),
    ],
)
def test_columns_of_other_types_are_refused(tmp_path: Path, column: str, values: list[object], message: str) -> None:
    frame = pl.DataFrame({"user": [1, 2], "item": [3, 4], "timestamp": [5, 6]} | {column: values})
    frame.write_parquet(tmp_path / "log.parquet")
    with pytest.raises(DataError, match=message):
        read_interactions(tmp_path / "log.parquet")


def test_a_mistyped_column_gets_a_suggestion(write: Write) -> None:
    with pytest.raises(DataError, match=r"expected a column itme in .*; did you mean 'item'"):
        read_interactions(write("log.csv", TABLE), Columns(item="itme"))


def test_a_truncated_archive_and_a_missing_file_are_named(tmp_path: Path) -> None:
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(TABLE.encode())[:-9])
    with pytest.raises(DataError, match=r"log\.csv\.gz is a truncated gzip file: it breaks off at byte"):
        read_interactions(tmp_path / "log.csv.gz")
    with pytest.raises(DataError, match=r"cannot read .*none\.csv: No such file"):
        read_interactions(tmp_path / "none.csv")


def test_other_encodings_are_told_with_their_place(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(TABLE.encode("utf-16"))
    with pytest.raises(DataError, match=r"expected UTF-8 in .*log.csv, got UTF-16 from byte 0 on"):
        read_interactions(path)
    path.write_bytes(TABLE.replace("a,9", "ä,9").encode("latin-1"))
    with pytest.raises(DataError, match=r"expected UTF-8 in line 3 of .*log.csv, got 0xe4 at byte 27"):
        read_interactions(path)


def test_a_gzip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(TABLE.encode() + bytes(2**27), 9))
    with pytest.raises(
        DataError, match=r"expected at most 67,108,864 bytes in the gzip file .*log.csv.gz of [\d,]+, got"
    ):
        read_interactions(tmp_path / "log.csv.gz")


def test_gzip_files_one_after_the_other_are_one(tmp_path: Path) -> None:
    half = len(TABLE) // 2
    packed = gzip.compress(TABLE[:half].encode()) + gzip.compress(TABLE[half:].encode()) + bytes(8)
    (tmp_path / "log.csv.gz").write_bytes(packed)
    assert len(read_interactions(tmp_path / "log.csv.gz").items) == 4


@pytest.mark.parametrize(("place", "byte"), [(54, 127), (313, 127), (359, 255), (664, 127)])
def test_damaged_parquet_is_refused_without_a_panic(
    place: int, byte: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Single bytes for which polars 2.1 aborts, as it asks for too much memory, or panics."""
    path = tmp_path / "log.parquet"
    pl.DataFrame({"user": list("abcd"), "item": list("abcd"), "timestamp": [1, 2, 3, 4]}).write_parquet(path)
    content = bytearray(path.read_bytes())
    content[place] = byte
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"expected a table in .*log.parquet, got one that cannot be read: .+") as error:
        read_interactions(path)
    assert "\n" not in str(error.value)
    assert capfd.readouterr().err == ""


def test_incomplete_rows_can_be_skipped(write: Write) -> None:
    path = write("log.csv", TABLE.replace("a,9,3", "a,,3") + ",9,7\n")
    with pytest.warns(UserWarning, match="skipped 2 incomplete rows, the first with no item in line 3"):
        log = read_interactions(path, skip_incomplete=True)
    assert log.incomplete == 2
    assert len(log.items) == 3


def test_a_file_that_changes_is_read_again(write: Write) -> None:
    assert len(read_interactions(write("log.csv", TABLE)).items) == 4
    assert len(read_interactions(write("log.csv", TABLE + "a,9,44\n")).items) == 5


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=30, unique=True)
)
def test_the_order_of_rows_matters_only_at_one_time(rows: list[tuple[int, int, int]]) -> None:
    def read(some: list[tuple[int, int, int]]) -> Interactions:
        frame = pl.DataFrame(some, schema=["user", "item", "time"], orient="row")
        return interactions_from(Table(frame, str), Path("log.parquet"), Columns())

    shuffled = Random(0).sample(rows, len(rows))
    one, other = read(rows), read(shuffled)
    assert sorted(events(one)) == sorted(events(other))
    assert one.starts.tolist() == other.starts.tolist()
    assert one.times is not None
    assert other.times is not None
    assert np.array_equal(one.times, other.times)


@needs_data
def test_movielens_is_all_there() -> None:
    log = read_movielens("ml-1m-sequences")
    assert (len(log.items), len(log.user_ids), len(log.item_ids)) == (999_611, 6_040, 3_416)
    assert log.times is None
    assert read_titles("ml-1m-sequences")["1"] == "Raiders of the Lost Ark (1981)"
    assert set(read_titles("ml-1m-sequences")) == set(log.item_ids)
    small = read_movielens("ml-latest-small")
    assert (len(small.items), len(small.user_ids), len(small.item_ids)) == (100_836, 610, 9_724)
    assert read_titles("ml-latest-small")["1"] == "Toy Story (1995)"


def mapped(path: Path) -> dict[str, str]:
    return {line.split()[0]: line.split()[1] for line in path.read_text().splitlines()}


@needs_data
def test_ratings_with_times_are_the_sequences_without() -> None:
    """Users 1 to 2999 of the original file, beside the sequences that others made of it, which leave out films with
    less than five ratings: the same films in the same order, but for those rated in one second."""
    path = find_file("ml-1m-sequences", "ratings_users1-2999.dat.gz")
    rated, sequences = read_interactions(path), read_movielens("ml-1m-sequences")
    assert (len(rated.items), len(rated.user_ids)) == (487_650, 2_999)
    assert rated.times is not None
    users, items = (mapped(path.parent / f"sas_to_original_{kind}.txt") for kind in ("users", "items"))
    known, numbers, compared = set(items.values()), {user: u for u, user in enumerate(rated.user_ids)}, 0
    for theirs, name in enumerate(sequences.user_ids):
        if users[name] not in numbers:
            continue
        ours = numbers[users[name]]
        events = range(rated.starts[ours], rated.starts[ours + 1])
        times = {rated.item_ids[rated.items[event]]: rated.times[event] for event in events}
        sequence = sequences.items[sequences.starts[theirs] : sequences.starts[theirs + 1]]
        films = [items[sequences.item_ids[item]] for item in sequence]
        assert set(films) == set(times) & known
        assert (np.diff([times[film] for film in films]) >= 0).all()
        compared += 1
    assert compared == 2_999


@needs_data
def test_a_damaged_movielens_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = find_file("ml-latest-small", "ml-latest-small.zip").read_bytes()
    for folder, name, content in (
        ("movielens/ml-latest-small", "ml-latest-small.zip", whole[:-100]),
        ("movielens/ml-1m", "ml-1m.txt", b"1 2\n1 3\n"),
    ):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / name).write_bytes(content)
    monkeypatch.setenv("SLIMRNN_DATA", str(tmp_path))
    with pytest.raises(DataError, match="expected a whole zip file, got"):
        read_movielens("ml-latest-small")
    with pytest.raises(DataError, match=r"expected 999,611 events in .*, got 2"):
        read_movielens("ml-1m-sequences")
    with pytest.raises(
        DataError, match=r"expected ratings\.dat of ml-1m at .*: put it there, or run slimrnn data get ml-1m"
    ):
        read_movielens("ml-1m")


def test_two_columns_of_one_name_are_refused(write: Write) -> None:
    with pytest.raises(DataError, match=r"expected different names in the header of .*, got 'user' more than once"):
        read_interactions(write("log.csv", "user,user,item,time\n1,2,3,4\n"))


def test_dates_that_are_another_day_elsewhere_are_refused(write: Write) -> None:
    text = "user,item,time\na,1,01/12/2020\na,2,02/01/2020\n"
    with pytest.raises(DataError, match=r"such as 2026-01-31 or .*, got '01/12/2020' in line 2"):
        read_interactions(write("log.csv", text))
    later = text.replace("01/12/2020", "2020-01-12")
    with pytest.raises(DataError, match="got '02/01/2020' in line 3"):
        read_interactions(write("log.csv", later))


def test_the_case_of_a_suffix_does_not_matter(write: Write) -> None:
    assert events(read_interactions(write("log.CSV", TABLE))) == events(read_interactions(write("plain.csv", TABLE)))


@pytest.mark.parametrize("head", ["user item", "UserId ItemId", "who what"])
def test_a_header_where_the_format_has_none_is_refused(write: Write, head: str) -> None:
    with pytest.raises(
        DataError, match=f"expected events from the first line .* got line 1 .*{head}.*: remove the line"
    ):
        read_interactions(write("log.txt", f"{head}\n1 2\n1 3\n"))
    named = read_interactions(write("names.txt", "ann tea\nann milk\n"))
    assert named.item_ids == ("milk", "tea")


def test_spaces_around_ids_do_not_count(write: Write) -> None:
    log = read_interactions(write("log.csv", "user,item,time\n 1,a ,3\n1,a,4\n"))
    assert (log.user_ids, log.item_ids) == (("1",), ("a",))
    with pytest.raises(DataError, match="got no item in line 2"):
        read_interactions(write("gap.csv", "user,item,time\n1,  ,3\n"))
