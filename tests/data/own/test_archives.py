"""Files of the UCR/UEA archive: .ts and .arff, and pairs of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from slimrnn.data.own_files import Roles, read_parts, read_sequences
from slimrnn.data.sequences import Sequences
from slimrnn.errors import DataError

HEAD = "# about\n@problemName p\n@timeStamps false\n"
RAGGED = f"{HEAD}@univariate false\n@dimensions 2\n@classLabel true yes no\n@data\n1,2,?:4,5,6:yes\n7:8:no\n"
ARFF = "@relation r\n@attribute a0 numeric\n@attribute a1 real\n@attribute target {0,1}\n@data\n1,2,0\n3,?,1\n"
INNER = "@relation r\n@attribute rel relational\n@attribute a0 numeric\n@attribute a1 numeric\n@end rel\n"


def read(folder: Path, text: str | bytes, name: str = "a.ts", roles: Roles | None = None) -> Sequences:
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_sequences(folder / name, roles)


def labels_of(found: Sequences) -> list[object]:
    assert found.labels is not None
    return list(found.labels.tolist())


def test_ragged_channels_and_missing_values(tmp_path: Path) -> None:
    found = read(tmp_path, RAGGED)
    np.testing.assert_array_equal(found.values, [[1, 4], [2, 5], [np.nan, 6], [7, 8]])
    assert (found.lengths.tolist(), found.columns, found.ids) == ([3, 1], ("dim1", "dim2"), ("1", "2"))
    assert labels_of(found) == ["yes", "no"]
    assert found.notes == ("took dim1, dim2 as inputs, label as labels", "1 value missing in dim1 (1)")


def test_comments_may_be_in_any_encoding(tmp_path: Path) -> None:
    assert len(read(tmp_path, b"# caf\xe9\n" + RAGGED.encode())) == 2
    with pytest.raises(DataError, match=r"expected UTF-8 in line 1 .*got 0xe9"):
        read(tmp_path, b"@problemName caf\xe9\n" + RAGGED.encode())


def test_times_of_steps(tmp_path: Path) -> None:
    text = f"{HEAD.replace('false', 'true')}@univariate true\n@classLabel true 1 2\n@data\n"
    found = read(tmp_path, text + "(2026-01-01 00:00:00,1.5),(2026-01-01 00:01:00,?):1\n")
    assert (
        np.array(found.times).tolist() == np.array(["2026-01-01T00:00", "2026-01-01T00:01"], "datetime64[us]").tolist()
    )
    assert np.array(read(tmp_path, text + "(0,1.5),(2.5,1):1\n").times).tolist() == [0, 2.5]
    with pytest.raises(DataError, match=r"expected times that increase in line 7 .*got 1 and then 1"):
        read(tmp_path, text + "(1,1.5),(1,1):1\n")


def test_targets_are_numbers_on_request(tmp_path: Path) -> None:
    text = f"{HEAD}@univariate true\n@targetlabel true\n@data\n1,2:0.25\n"
    assert labels_of(read(tmp_path, text)) == ["0.25"]
    assert labels_of(read(tmp_path, text, roles=Roles(numbers=True))) == [0.25]
    assert read(tmp_path, text, roles=Roles(labels="none")).labels is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("7:8:no", "7:8:perhaps", "expected a label of yes, no in line 9 of .*, got 'perhaps'"),
        ("7:8:no", "7:8", "expected a label of yes, no in line 9 of .*, got '8'"),
        ("7:8:no", "7,9:8:no", "expected 2 values in channel 2 of line 9 of .*, as in channel 1, got 1"),
        ("7:8:no", "7:8:9:no", "expected 2 channels and a label between colons in line 9 of .*, got 3"),
        ("7:8:no", "7:x:no", "expected a number as value 1 in line 9 of .*, got 'x'"),
        ("7:8:no", "7:1e39:no", r"expected a finite number of at most 3.4e\+38 as value 1 in line 9 of .*, got '1e39'"),
        ("@data", "@equalLength true\n@data", "expected 3 values in line 10 of .*, as @equalLength is true, got 1"),
        ("@dimensions 2", "@dimensions -2", "expected a number from 1 on after @dimensions in line 5 of .*, got '-2'"),
        ("@dimensions", "@dimnsions", "expected a tag of a .ts file in line 5 of .*, got '@dimnsions 2'"),
        ("false\n@dim", "no\n@dim", "expected true or false after @univariate in line 4 of .*, got 'no'"),
        ("@data", "", "expected a @tag or @data in line 8 of .*, got '1,2,.:4,5,6:yes'"),
        (RAGGED, HEAD, "expected @data in .*, got its end"),
        (RAGGED, f"{HEAD}@data\n", "expected sequences after @data in .*, got none"),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, RAGGED.replace(old, new))


def test_arff_with_steps_as_attributes(tmp_path: Path) -> None:
    found = read(tmp_path, ARFF, "a.arff")
    assert (found.values.tolist(), found.lengths.tolist()) == ([[1], [2], [3]], [2, 1])
    assert labels_of(found) == ["0", "1"]
    assert found.roles == Roles(label="target", columns=("value",))


def test_arff_with_channels_in_a_relation(tmp_path: Path) -> None:
    found = read(
        tmp_path, f"{INNER}@attribute class {{p,'q r'}}\n@data\n'1,2\\n3,4',p\n\"5,6\\n7,8\",'q r'\n", "a.arff"
    )
    assert found.values.tolist() == [[1, 3], [2, 4], [5, 7], [6, 8]]
    assert labels_of(found) == ["p", "q r"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("3,?,1", "3,?,2", "expected a label of 0, 1 in line 7 of .*, got '2'"),
        ("3,?,1", "3,1", "expected 3 values in line 7 of .*, got 2"),
        ("3,?,1", "?,?,1", "expected values in each sequence, got none in line 7 of"),
        ("3,?,1", "{0 3}", "expected all values in line 7 of .*, got a sparse row"),
        (
            "a1 real",
            "a1 string",
            "expected numeric, relational or {a,b} as the type of a1 in line 3 of .*, got 'string'",
        ),
        ("a1 real", "a0 real", "expected different names of attributes in .*, got 'a0' twice"),
    ],
)
def test_what_is_wrong_in_arff_is_named(old: str, new: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, ARFF.replace(old, new), "a.arff")


def test_a_folder_of_two_parts_is_one_data_set(tmp_path: Path) -> None:
    folder = tmp_path / "Set"
    folder.mkdir()
    for name, count in (("Set_TRAIN.ts", 2), ("Set_TEST.ts", 1), ("Set_TRAIN.arff", 1), ("Other_TRAIN.ts", 2)):
        lines = RAGGED.splitlines(keepends=True)
        (folder / name).write_text("".join(lines[: 7 + count]))
    found = read_sequences(folder)
    assert (found.parts, found.ids) == (("train", "train", "test"), ("train/1", "train/2", "test/1"))
    assert (found.lengths.tolist(), labels_of(found)) == ([3, 1, 3], ["yes", "no", "yes"])
    assert found.notes[0] == "train: took dim1, dim2 as inputs, label as labels"
    same = [
        read_sequences(folder / "Set"),
        read_parts({"train": folder / "Set_TRAIN.ts", "test": folder / "Set_TEST.ts"}),
    ]
    for other in same:
        np.testing.assert_array_equal(other.values, found.values)
        assert (other.parts, other.roles) == (found.parts, found.roles)
    assert read_sequences(folder / "Other").parts == ("train", "train")
    folder.rename(tmp_path / "Sets")
    with pytest.raises(DataError, match=r"expected one data set in .*, got Other, Set: say which"):
        read_sequences(tmp_path / "Sets")


def test_parts_have_the_same_inputs(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,x\nn,1\n")
    (tmp_path / "b.csv").write_text("id,y\nn,1\n")
    with pytest.raises(DataError, match=r"expected a column x \(input\) in .*b.csv, got id, y"):
        read_parts({"train": tmp_path / "a.csv", "test": tmp_path / "b.csv"})


def test_names_of_columns_need_a_table(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"expected no column for time with .*, got t: it is no table"):
        read(tmp_path, RAGGED, roles=Roles(time="t"))
    assert read(tmp_path, RAGGED, roles=Roles(columns=("dim2",))).values.shape == (4, 1)
    with pytest.raises(DataError, match=r"expected a channel dim3 in .*, got dim1, dim2"):
        read(tmp_path, RAGGED, roles=Roles(columns=("dim3",)))
