"""Files are whole or not there, under names that nobody can guess, with the permissions of the umask."""

import os

import pytest

from regard.files import DRAFT, replacing, write_text


def test_a_file_appears_when_it_is_complete_and_nothing_else_stays(tmp_path):
    path = tmp_path / "new" / "a.txt"
    with replacing(path) as draft:
        draft.write_text("half")
        assert not path.exists()
        assert draft.parent == path.parent, "on the same file system, so that renaming it is one step"
    assert path.read_text() == "half"
    with pytest.raises(TypeError), replacing(path) as draft:
        draft.write_text(None)
    assert [each.name for each in path.parent.iterdir()] == ["a.txt"]
    assert path.read_text() == "half"


def test_temporary_names_cannot_be_guessed_and_links_are_not_followed(tmp_path):
    path, precious = tmp_path / "a.txt", tmp_path / "precious"
    precious.write_text("mine")
    names = set()
    for _ in range(20):
        with replacing(path) as draft:
            names.add(draft.name)
            assert not draft.is_symlink()
            assert draft.stat().st_mode & 0o077 == 0, "nobody else may write to it"
    assert len(names) == 20
    for guess in (f"a.txt{DRAFT}", f".a.txt{DRAFT}", f".a.txt.{os.getpid()}{DRAFT}", *names):
        (tmp_path / guess).symlink_to(precious)
    write_text(path, "text")
    assert (path.read_text(), precious.read_text()) == ("text", "mine")


def test_a_link_is_replaced_and_what_it_leads_to_is_left(tmp_path):
    precious, link = tmp_path / "precious", tmp_path / "link"
    precious.write_text("mine")
    link.symlink_to(precious)
    write_text(link, "text")
    assert (link.read_text(), precious.read_text()) == ("text", "mine")


def test_permissions_are_those_of_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "a.txt", "text")
    finally:
        os.umask(before)
    assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o640
