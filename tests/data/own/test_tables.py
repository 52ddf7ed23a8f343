"""Long and wide tables of sequences: what is read, what is guessed, what is refused."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from slimrnn.data.own_files import Roles, read_sequences
from slimrnn.data.sequences import Sequences
from slimrnn.errors import DataError

LONG = "id,t,a,b,label\nx,0,1,2,u\nx,1,3,,u\ny,0,5,6,v\ny,1,7,8,v\ny,2,9,NA,v\n"
VALUES = [[1, 2], [3, np.nan], [5, 6], [7, 8], [9, np.nan]]


def read(folder: Path, text: str | bytes, roles: Roles | None = None, name: str = "a.csv") -> Sequences:
    raw = text if isinstance(text, bytes) else text.encode()
    (folder / name).write_bytes(raw)
    return read_sequences(folder / name, roles)


def refusal(folder: Path, text: str | bytes, roles: Roles | None = None, name: str = "a.csv") -> str:
    with pytest.raises(DataError) as caught:
        read(folder, text, roles, name)
    return str(caught.value).replace(str(folder), "")


def labels_of(found: Sequences) -> list[object]:
    assert found.labels is not None
    return list(found.labels.tolist())


def test_a_long_table_is_sequences_of_rows(tmp_path: Path) -> None:
    found = read(tmp_path, LONG)
    np.testing.assert_array_equal(found.values, np.array(VALUES, np.float32))
    assert found.starts.tolist() == [0, 2, 5]
    assert (found.ids, found.columns) == (("x", "y"), ("a", "b"))
    assert labels_of(found) == ["u", "v"]
    assert np.array(found.times).tolist() == [0, 1, 0, 1, 2]
    assert found.roles == Roles("id", "t", "label", None, ("a", "b"), layout="long")
    assert found.notes == (
        "long table; took id as sequence, t as time, label as label, a, b as inputs",
        "2 values missing in b (2)",
    )


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_separators_quotes_marks_and_line_ends_do_not_matter(separator: str, tmp_path: Path) -> None:
    text = LONG.replace(",", separator).replace("x", '"x"').replace("\n", "\r\n")
    found = read(tmp_path, "\ufeff" + text + "\r\n\r\n")
    np.testing.assert_array_equal(found.values, np.array(VALUES, np.float32))
    assert found.ids == ("x", "y")


def test_a_quoted_name_may_have_separators_and_line_breaks(tmp_path: Path) -> None:
    found = read(tmp_path, 'id,a\n"one, two",1\n"three\nfour",2\n"say ""five""",3\n')
    assert found.ids == ("one, two", "three\nfour", 'say "five"')
    assert (
        refusal(tmp_path, 'id,a\n"three\nfour",2\nx,y\n') == "expected a number as a in /a.csv, got 'y' in line 4 (x,y)"
    )


def test_gzip_tsv_and_parquet_are_read_alike(tmp_path: Path) -> None:
    plain = read(tmp_path, LONG)
    buffer = io.BytesIO()
    pl.read_csv(LONG.encode(), null_values="NA").write_parquet(buffer)
    others = [
        read(tmp_path, gzip.compress(LONG.encode()), name="a.csv.gz"),
        read(tmp_path, LONG.replace(",", "\t"), name="a.tsv"),
        read(tmp_path, buffer.getvalue(), name="a.parquet"),
    ]
    for found in others:
        np.testing.assert_array_equal(found.values, plain.values)
        assert (found.ids, found.notes, found.roles) == (plain.ids, plain.notes, plain.roles)
        assert labels_of(found) == ["u", "v"]


def test_times_of_parquet_are_in_utc(tmp_path: Path) -> None:
    noon = pl.Series("t", ["2026-01-31T12:00:00", "2026-01-31T13:00:00"]).str.to_datetime(time_unit="ns")
    for times in (noon, noon.dt.replace_time_zone("Europe/Berlin"), noon.dt.date().unique()):
        buffer = io.BytesIO()
        pl.DataFrame({"t": times, "a": [float(n) for n in range(len(times))]}).write_parquet(buffer)
        found = np.array(read(tmp_path, buffer.getvalue(), name="a.parquet").times)
        hour = {2: 12 - (times.dtype != noon.dtype), 1: 0}[len(times)]
        assert found[0] == np.datetime64(f"2026-01-31T{hour:02}:00")


def test_a_file_is_the_same_in_pieces_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "id,t,a,label\n" + "".join(f'"s{i // 7}",{i % 7},{i / 3},"k, {i // 7 % 2}"\n' for i in range(70))
    whole = read(tmp_path, text)
    for size in (1, 7, 100, 1000):
        monkeypatch.setattr("slimrnn.data.own.csv_records.SIZE", size)
        found = read(tmp_path, text)
        np.testing.assert_array_equal(found.values, whole.values)
        assert found.ids == whole.ids
        assert labels_of(found) == ["k, 0", "k, 1"] * 5
        assert "line 60 (" in refusal(tmp_path, text.replace(f",{58 / 3},", ",oops,"))


def test_rows_are_put_in_order(tmp_path: Path) -> None:
    found = read(tmp_path, "id,t,a\nx,2,3\ny,0,4\nx,0,1\nx,1,2\n")
    assert found.values[:, 0].tolist() == [1, 2, 3, 4]
    assert found.notes[1:] == ("put the rows of each id together",)
    found = read(tmp_path, "id,t,a\nx,2,3\nx,0,1\n")
    assert found.notes[1:] == ("sorted by t: 1 row came before the row above",)


def test_dates_are_times(tmp_path: Path) -> None:
    found = read(tmp_path, "when,kwh\n2026-01-31T12:00:00+01:00,1\n2026-01-31T11:30:00Z,2\n")
    assert found.times is not None
    assert found.times.tolist() == np.array(["2026-01-31T11:00", "2026-01-31T11:30"], "datetime64[us]").tolist()
    assert read(tmp_path, "month,n\n1949-01,1\n1949-02,2\n").times is not None
    message = refusal(tmp_path, "when,kwh\n2026-01-31,1\n2026-02-30,2\n")
    assert message.startswith("expected a time such as 2026-01-31 or 2026-01-31 12:00:00 as when in /a.csv")
    assert message.endswith("got '2026-02-30' in line 3 (2026-02-30,2)")


FINITE = "a finite number of at most 3.4e+38 as a in /a.csv"
DIFFERENT = "different names in line 1 of /a.csv, the header"
ONE_LABEL = "one label for each sequence in /a.csv"
OTHER_LABELS = "labels may be one for each step, or the column of sequences another"
WHOLE = "quotes around whole values in /a.csv"
PART = "train, valid or test as split in /a.csv"


@pytest.mark.parametrize(
    ("text", "expected", "got"),
    [
        ("", "a table", "/a.csv, which is empty"),
        ("id,a\n", "rows after the header of /a.csv", "none"),
        ("id,a\nx,1\nx,two\nx,3\n", "a number as a in /a.csv", "'two' in line 3 (x,two)"),
        ("id,a\nx,1\nx,inf\n", FINITE, "'inf' in line 3 (x,inf)"),
        ("id,a\nx,1\nx,1e39\n", FINITE, "'1e39' in line 3 (x,1e39)"),
        ("id;a\nx;1\nx;1,5\n", "a number as a in /a.csv", "'1,5' in line 3 (x;1,5): write decimals with a point"),
        ("id,a\nx,1\nx\n", "2 values in each line of /a.csv", "1 in line 3 (x)"),
        ("id,a\nx,1\n\nx,2\n", "2 values in each line of /a.csv", "1 in line 3 ()"),
        ("id,a,a\nx,1,2\n", DIFFERENT, "'a' for the columns 2 and 3"),
        ("walk,1.5\nrun,2.5\n", "names in line 1 of /a.csv, the header", "the number '1.5'"),
        ("\nid,a\nx,1\n", "names of columns in line 1 of /a.csv", "''"),
        ("id,a\nx,1\n,1\n", "the name of a sequence as id in /a.csv", "'' in line 3 (,1)"),
        (
            "id,t,a\nx,0,1\nx,0,2\n",
            "one row at each t of 'x' in /a.csv",
            "two at 0.0: line 2 (x,0,1) and line 3 (x,0,2)",
        ),
        ("id,a,label\nx,1,u\nx,2,v\n", ONE_LABEL, f"line 2 (x,1,u) and line 3 (x,2,v): {OTHER_LABELS}"),
        ("id,a,label\nx,1,u\nx,1,?\n", "a label as label in /a.csv", "'?' in line 3 (x,1,?)"),
        ("id,a,split\nx,1,train\ny,2,train\nz,3,often\n", PART, "'often' in line 4 (z,3,often)"),
        ('id,a\n"x,1\n', "a quote that closes in /a.csv", 'one that does not from line 2 on ("x,1)'),
        ('id,a\nx"y",1\n', WHOLE, 'one inside a value in line 2 (x"y",1)'),
        ("name\nAnna\n", "columns of numbers in /a.csv", "name"),
        (b"id,a\nx,\xe9\n", "UTF-8 in line 2 of /a.csv", "0xe9"),
        (b"id,a\nx,\0\n", "text in line 2 of /a.csv", "a NUL byte: is it UTF-8?"),
        (b"id,a\rx,1\r", "line ends \\n or \\r\\n in /a.csv", "\\r alone in line 1"),
    ],
)
def test_what_is_wrong_is_named(text: str | bytes, expected: str, got: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, text) == f"expected {expected}, got {got}"


HINT = "a net reads numbers; leave it out, or write a column of 0 and 1 for each of its values"


@pytest.mark.parametrize(
    ("roles", "expected", "got"),
    [
        (Roles(sequence="idd"), "a column idd (sequence) in /a.csv", "id, t, a, b, label; did you mean 'id'?"),
        (Roles(time="a", columns=("a",)), "one role for the column a of /a.csv", "time and input"),
        (Roles(columns=("label",), labels="none"), "numbers as label in /a.csv", f"texts such as 'u': {HINT}"),
        (Roles(numbers=True), "a number as label in /a.csv", "'u' in line 2 (x,0,1,2,u)"),
    ],
)
def test_roles_must_fit_the_file(roles: Roles, expected: str, got: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, LONG, roles) == f"expected {expected}, got {got}"


def test_a_date_is_no_input(tmp_path: Path) -> None:
    message = refusal(tmp_path, "day,a\n2026-01-01,1\n", Roles(columns=("day",)))
    assert message == (
        "expected numbers as day in /a.csv, got times such as '2026-01-01': a date is no input; name it as the time, "
        "or write hours or weekdays as numbers"
    )


def test_labels_of_steps_and_numbers(tmp_path: Path) -> None:
    text = "id,a,label\nx,1,0.5\nx,2,1\n"
    found = read(tmp_path, text, Roles(labels="step", numbers=True))
    assert labels_of(found) == [0.5, 1]
    found = read(tmp_path, text, Roles(labels="step"))
    assert labels_of(found) == ["0.5", "1"]
    assert read(tmp_path, text, Roles(labels="none")).columns == ("a", "label")


def test_new_files_are_read_with_the_roles_of_the_first(tmp_path: Path) -> None:
    roles = read(tmp_path, LONG.replace("\n", ",\n").replace("label,", "label,split").replace(",\n", ",train\n")).roles
    (tmp_path / "new.csv").write_text("note,b,a,id,t\nhello,2,1,z,0\n")
    found = read_sequences(tmp_path / "new.csv", roles, to_predict=True)
    assert (found.values.tolist(), found.ids, found.labels) == ([[1, 2]], ("z",), None)
    with pytest.raises(DataError, match=r"expected a column label \(label\)"):
        read_sequences(tmp_path / "new.csv", roles)


def test_a_wide_table_is_a_sequence_in_each_row(tmp_path: Path) -> None:
    found = read(tmp_path, "label,t0,t1,t2,t3,t4\nu,1,2,3,4,5\nv,6,,8,,\n")
    assert found.values[:, 0].tolist()[:6] == [1, 2, 3, 4, 5, 6]
    assert (found.lengths.tolist(), found.columns) == ([5, 3], ("t",))
    assert labels_of(found) == ["u", "v"]
    assert found.notes[0] == "wide table; took label as label, t0, t1, t2, t3, t4 as inputs"
    assert found.notes[1] == "missing values at the end of 1 sequence are taken as the end of it"
    assert found.roles == Roles(label="label", columns=("t0", "t1", "t2", "t3", "t4"), layout="wide")


def test_a_wide_table_may_have_channels(tmp_path: Path) -> None:
    names = [f"{channel}_{step}" for channel in "xy" for step in range(1, 6)]
    found = read(tmp_path, ",".join(["id", *names]) + "\n" + ",".join(["n", *map(str, range(10))]) + "\n")
    assert found.columns == ("x", "y")
    assert found.values.tolist() == [[n, n + 5] for n in range(5)]
    assert found.ids == ("n",)


def test_the_layout_can_be_given(tmp_path: Path) -> None:
    text = "t0,t1,t2,t3,t4\n1,2,3,4,5\n6,7,8,9,0\n"
    assert read(tmp_path, text).values.shape == (10, 1)
    assert read(tmp_path, text, Roles(layout="long")).values.shape == (2, 5)
    assert read(tmp_path, "first,then\n1,2\n", Roles(layout="wide")).values.tolist() == [[1], [2]]


def test_the_archive_tsv_has_its_label_first(tmp_path: Path) -> None:
    found = read(tmp_path, "1\t0.5\t1.5\t2.5\t3.5\t4.5\n2\t5\t6\t7\tNaN\tNaN\n", name="a.tsv")
    assert labels_of(found) == ["1", "2"]
    assert found.lengths.tolist() == [5, 3]
    assert "line 1 has numbers and no names: columns are counted" in found.notes


def test_ids_of_a_wide_table_differ(tmp_path: Path) -> None:
    text = "id,t0,t1,t2,t3,t4\nn,1,2,3,4,5\nn,1,2,3,4,5\n"
    message = refusal(tmp_path, text, Roles(layout="wide"))
    assert message.startswith(
        "expected one row for each id of the wide table /a.csv, got two of 'n': line 2 (n,1,2,3,4,5)"
    )


def test_spaces_around_labels_and_ids_do_not_count(tmp_path: Path) -> None:
    found = read(tmp_path, "id,t,a,label\nx,0,1, u\nx ,1,3,u \n y,0,5,v\n")
    assert (found.ids, labels_of(found)) == (("x", "y"), ["u", "v"])
    wide = read(tmp_path, "label,t0,t1,t2,t3,t4\nu ,1,2,3,4,5\nu,1,2,3,4,5\n")
    assert labels_of(wide) == ["u", "u"]
