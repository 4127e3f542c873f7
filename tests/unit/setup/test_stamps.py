import os

from eloquio.setup.stamps import Stamp, digest, files_below


def test_a_stamp_says_what_was_written_last(tmp_path):
    stamp = Stamp(tmp_path / "made" / "stamp")
    assert not stamp.says("one")

    stamp.write("one")
    stamp.write("two")

    assert stamp.says("two")
    assert not stamp.says("one")


def test_a_cleared_stamp_says_nothing(tmp_path):
    stamp = Stamp(tmp_path / "stamp")
    stamp.write("one")
    stamp.clear()

    assert stamp.text() is None


def test_a_digest_changes_with_contents_names_and_texts_but_not_with_times(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("content")
    first = digest(tmp_path, [file], "text")

    os.utime(file, (1, 1))
    assert digest(tmp_path, [file], "text") == first

    assert digest(tmp_path, [file], "other text") != first
    renamed = file.rename(tmp_path / "b.txt")
    assert digest(tmp_path, [renamed], "text") != first
    renamed.rename(file).write_text("changed")
    assert digest(tmp_path, [file], "text") != first


def test_a_digest_is_the_same_for_a_copy_in_another_folder(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text("content")

    one, two = (digest(tmp_path / n, files_below(tmp_path / n)) for n in ("one", "two"))

    assert one == two


def test_files_below_come_in_order_and_without_the_folders_left_out(tmp_path):
    for name in ("src/z.ts", "src/a.ts", "dist/built.js", "index.html"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.touch()

    names = [str(path.relative_to(tmp_path)) for path in files_below(tmp_path, but=["dist"])]

    assert names == ["index.html", "src/a.ts", "src/z.ts"]
