"""Texts by symbol: the Penn Treebank's characters, and any file."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest

from real_data import needs_data
from slimrnn.data import DataError, find_file
from slimrnn.data.text import PTB_SYMBOLS, SHARES, Text, parse_ptb, read_ptb, read_text

FILE = Path("ptb.char.train.txt")
POEM = (
    "the fog comes\non little cat feet.\n\n"
    "it sits looking\nover harbor and city\non silent haunches\nand then moves on.\n"
)


def written(text: str) -> bytes:
    """As the Penn Treebank's files are written."""
    return "".join(f"{'_' if symbol == ' ' else symbol} " for symbol in text).encode()


@needs_data
@pytest.mark.parametrize(
    ("split", "characters", "sentences", "md5"),
    [
        ("train", 5_017_482, 42_068, "874909f99060142f6b88cc74c34baaa2"),
        ("valid", 393_042, 3_370, "9e0fe5bec2a8bf43fd686dc23d5ab8bb"),
        ("test", 442_423, 3_761, "1f9a2d1afe00f76e8bfbe09a65439681"),
    ],
)
def test_the_penn_treebank_has_the_known_sizes(split: str, characters: int, sentences: int, md5: str) -> None:
    text = read_ptb(split)
    assert (len(text.tokens), len(text.sentences()[0])) == (characters, sentences)
    assert hashlib.md5(find_file("ptb", f"ptb.char.{split}.txt").read_bytes()).hexdigest() == md5


@needs_data
def test_the_penn_treebank_has_50_symbols_and_its_first_words() -> None:
    text = read_ptb("train")
    assert len(text.symbols) == 50
    assert np.bincount(text.tokens, minlength=50).min() > 0
    assert str(Text(text.tokens[:22], text.symbols)) == "aer banknote berlitz c"


@needs_data
def test_the_characters_are_those_of_the_words() -> None:
    words = find_file("ptb", "ptb.valid.txt").read_text()
    lines = [" ".join(line.split()) for line in words.splitlines()]
    assert [line.strip() for line in str(read_ptb("valid")).splitlines()] == lines


def test_what_is_written_is_read() -> None:
    text = parse_ptb(written("mr. <unk> is N\nchairman\n"), FILE)
    assert str(text) == "mr. <unk> is N\nchairman\n"
    assert [part.tolist() for part in text.sentences()] == [[0, 15], [15, 9]]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"a b cd \n ", "a symbol of the Penn Treebank and a space at byte 4 of ptb.char.train.txt, got b'cd'"),
        (b"a B \n ", "a symbol of the Penn Treebank and a space at byte 2 of ptb.char.train.txt, got b'B '"),
        (b"a \xff \n ", r"a symbol of the Penn Treebank and a space at byte 2 of ptb.char.train.txt, got b'\xff '"),
        (b"a \n b", "a symbol of the Penn Treebank and a space at byte 4 of ptb.char.train.txt, got b'b'"),
        (b"a \n b ", "the end of a sentence at byte 6 of ptb.char.train.txt, got the end of the file"),
        (b"", "the end of a sentence at byte 0 of ptb.char.train.txt, got the end of the file"),
    ],
)
def test_damage_is_named_with_its_place(raw: bytes, message: str) -> None:
    with pytest.raises(DataError, match=f"^expected {re.escape(message)}$"):
        parse_ptb(raw, FILE)


def test_a_shorter_penn_treebank_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIMRNN_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"expected ptb.char.test.txt of ptb at .*ptb.char.test.txt, got none"):
        read_ptb("test")
    (tmp_path / "ptb").mkdir()
    (tmp_path / "ptb" / "ptb.char.test.txt").write_bytes(written("no it\n"))
    with pytest.raises(DataError, match=r"expected 442,423 characters in .*ptb.char.test.txt, got 6"):
        read_ptb("test")


def test_parts_of_a_file_make_up_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "poem.txt"
    path.write_text(POEM + "naïve – 漢字 🙂")
    parts = [read_text(path, split) for split in SHARES]
    assert "".join(map(str, parts)) == path.read_text()
    assert len(parts[0].tokens) == 9 * len(path.read_text()) // 10
    assert {part.symbols for part in parts} == {"".join(sorted(set(path.read_text())))}


def test_a_changed_file_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "poem.txt"
    path.write_text("a" * 200)
    assert read_text(path, "train").symbols == "\na"
    path.write_text("b" * 201)
    assert read_text(path, "train").symbols == "\nb"


def test_sentences_hold_every_character_once() -> None:
    for end in ("", "\n", "\n\n", "no end"):
        text = POEM + end
        symbols = "".join(sorted(set(text)))
        found = Text(np.array([symbols.index(c) for c in text]), symbols)
        starts, lengths = found.sentences()
        pieces = [text[start : start + length] for start, length in zip(starts, lengths, strict=True)]
        assert pieces == text.splitlines(keepends=True)


def test_files_that_are_no_texts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"expected a text file, got .*none.txt: No such file or directory"):
        read_text(tmp_path / "none.txt", "train")
    with pytest.raises(DataError, match=r"cannot read .*: Is a directory"):
        read_text(tmp_path, "train")
    (tmp_path / "short.txt").write_text("too short")
    with pytest.raises(DataError, match=r"expected a text of at least 100 characters, got 9 in .*short.txt"):
        read_text(tmp_path / "short.txt", "train")
    (tmp_path / "latin.txt").write_bytes(b"x" * 150 + b"\xe9")
    with pytest.raises(DataError, match=r"expected UTF-8 at byte 150 of .*latin.txt, got 0xe9"):
        read_text(tmp_path / "latin.txt", "train")


def test_the_alphabet_has_no_symbol_twice() -> None:
    assert len(set(PTB_SYMBOLS)) == len(PTB_SYMBOLS) == 50
