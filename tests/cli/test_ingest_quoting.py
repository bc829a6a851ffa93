"""How the quotes of a CSV file are found out."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.cli import ingest_quoting
from tamis.cli.ingest_quoting import PLAIN, Layout, Quoting, quoting_of_files
from tamis.errors import InvalidInput

DOUBLED, BACKSLASH = Quoting('"'), Quoting("\\")


def quoting_of(folder: Path, text: str, layout: Layout | None = None, encoding: str = "utf-8") -> Quoting:
    path = folder / "x.csv"
    path.write_bytes(text.encode(encoding))
    return quoting_of_files([str(path)], layout or Layout())[str(path)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,2\n", PLAIN),
        ("", PLAIN),
        ('a,b\n1,"say ""hi"""\n', DOUBLED),
        ('a,b\r\n"x","y"\r\n', DOUBLED),
        ('a,b\n"",""\n1,', DOUBLED),
        ('a\n"C:\\dir\\"\n', DOUBLED),
        ('a,b\n1,5" disk\n', DOUBLED),
        ('a,b\n1,"say \\"hi\\""\n', BACKSLASH),
        ('id,addr\nA1,"12 Main\nSpringfield, IL"\n', Quoting('"', "\n")),
        ('a,b\n1,5" disk\n2,"x\ny"\n', Quoting('"', "\n")),
        ('a,b\n"x\\"y\nz",2\n', Quoting("\\", "\n")),
        ('id,"full\nname",t\r\n1,x,y\r\n', Quoting('"', "\r\n")),
        ('id,t\r1,"x\ny"\r', Quoting('"', "\r")),
        ('id,t\n1,5\\" disk\n2,"C:\\dir"\n', DOUBLED),
        ('a,b\n"1" ,"x" \n', DOUBLED),
        ('a,b\n"\\\\srv\\dir","x"\n', DOUBLED),
        ('a,b\n"a\\\\b","say ""hi"""\n', DOUBLED),
        ('a,b\na\\\\b,"x"\n', DOUBLED),
        ('a,b\n"a\\\\b","say \\"hi\\""\n', BACKSLASH),
    ],
)
def test_the_whole_file_says_how_it_is_quoted(tmp_path: Path, text: str, expected: Quoting) -> None:
    assert quoting_of(tmp_path, text) == expected
    assert quoting_of(tmp_path, text.replace(",", "||"), Layout("||")) == expected
    assert quoting_of(tmp_path, text.replace(",", "\t"), Layout(r"\t")) == expected
    assert quoting_of(tmp_path, text, Layout(encoding="utf-16"), "utf-16") == expected


@pytest.mark.parametrize(
    "text",
    [
        'a,b\n"C:\\\\","x"\n',
        'a,b\n"C:\\\\dir, x",1\n',
        'a,b\n"C:\\\\dir\nx",1\n',
        'a,b\n1,"abc\n2,def\n',
        'a,b\n1,"abc"d\n2,x\n',
        'id,n,t\n1,"x\ny",y\r\n',
    ],
)
def test_quotes_that_do_not_tell_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        quoting_of(tmp_path, text)
    assert raised.value.code == "BAD_DATA"


def test_an_unclear_file_is_read_as_others_of_its_job(tmp_path: Path) -> None:
    """Two jobs of Spark, one with escape='"'; a file of a third has nobody to tell."""
    jobs = ["0c0ffee0-0000-4000-8000-00000000000" + end for end in "123"]
    unclear = 'a\n"C:\\\\dir, x"\n'
    texts = {
        f"part-00000-{jobs[0]}-c000.csv": unclear,
        f"part-00001-{jobs[0]}-c000.csv": 'a\n"x, y"\n',
        f"part-00002-{jobs[0]}-c000.csv": 'a\n"say \\"hi\\""\n',
        f"part-00000-{jobs[1]}-c000.csv": unclear,
        f"part-00001-{jobs[1]}-c000.csv": 'a\n"say ""hi"""\n',
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path / name) for name in texts]
    found = quoting_of_files(paths, Layout())
    assert [found[path] for path in paths] == [BACKSLASH, DOUBLED, BACKSLASH, DOUBLED, DOUBLED]
    (tmp_path / f"part-00000-{jobs[2]}-c000.csv").write_text(unclear)
    with pytest.raises(InvalidInput, match="in two ways"):
        quoting_of_files([*paths, str(tmp_path / f"part-00000-{jobs[2]}-c000.csv")], Layout())


def test_texts_that_no_value_in_quotes_has_are_not_unclear(tmp_path: Path) -> None:
    assert quoting_of(tmp_path, 'id\tj\n1\t{"a":"x\\"y"}\n', Layout("\t")) == DOUBLED
    blanks = 'id,t\n1, "5\\" disk"\n'
    assert quoting_of(tmp_path, blanks, Layout(skips_blanks=True)) == BACKSLASH


def test_lines_that_are_not_plain_are_not_looked_through(tmp_path: Path) -> None:
    layout = Layout(plain_lines=False)
    assert quoting_of(tmp_path, "a,b\n1,2\n", layout) == PLAIN
    with pytest.raises(InvalidInput, match="not looked through"):
        quoting_of(tmp_path, 'a,b\n1,"2"\n', layout)


def test_a_packed_file_is_unpacked_whatever_the_case_of_its_ending(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.GZ"
    path.write_bytes(gzip.compress(b'a\n"x\\"y"\n'))
    assert quoting_of_files([str(path)], Layout())[str(path)] == BACKSLASH


def test_what_cannot_be_read_is_left_to_spark(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.gz"
    path.write_bytes(b"not packed")
    assert quoting_of_files([str(path)], Layout())[str(path)] == PLAIN


TEXTS = st.lists(st.lists(st.text('ab" \\\n\r,', max_size=4), min_size=2, max_size=2), min_size=1, max_size=6)


@given(TEXTS, st.sampled_from([1, 2, 5, 1 << 24]))
def test_files_of_python_are_doubled(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], piece: int
) -> None:
    """Whatever the pieces in which a file is read; backslashes before quotes may make it unclear."""
    out = io.StringIO(newline="")
    csv.writer(out).writerows(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingest_quoting, "_PIECE", piece)
        try:
            found = quoting_of(tmp_path_factory.mktemp("csv"), out.getvalue())
        except InvalidInput:
            assert {'\\"', "\\\\"} & {out.getvalue()[at : at + 2] for at in range(len(out.getvalue()))}
            return
    assert found.escape == '"'
    assert found.line_end == "\r\n" or not any("\n" in text or "\r" in text for row in rows for text in row)


@given(st.lists(st.text('ab"\\,', max_size=4), min_size=1, max_size=6), st.sampled_from([1, 2, 5, 1 << 24]))
def test_files_of_spark_are_never_doubled(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], piece: int
) -> None:
    quoted = {text for text in texts if "," in text or '"' in text}
    escaped = [text.replace("\\", "\\\\").replace('"', '\\"') for text in texts]
    lines = [f'"{inner}",1' if text in quoted else f"{text},1" for text, inner in zip(texts, escaped, strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingest_quoting, "_PIECE", piece)
        try:
            found = quoting_of(tmp_path_factory.mktemp("csv"), "\n".join(["a,b", *lines, ""]))
        except InvalidInput:
            assert any("\\" in text for text in quoted)
            return
    assert found == BACKSLASH or not any("\\" in text or '"' in text for text in quoted)
