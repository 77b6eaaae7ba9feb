import pytest
from unit.task.trees import tree_of

from multistep.task.tree import clean_path, path_fault


def test_parents_are_there_and_paths_are_sorted() -> None:
    assert list(tree_of({"b/c/d": "x", "a": "y"})) == ["a", "b", "b/c", "b/c/d"]


def test_links_are_followed_in_every_part_of_a_path() -> None:
    tree = tree_of({"real/dir/f": "x", "l": "@link:real", "real/back": "@link:../l/dir"})
    assert tree.resolve("real/back/f") == "real/dir/f"
    assert tree.read("l/back/f") == b"x"
    assert tree.is_directory("l/dir")
    assert not tree.is_file("l/dir")


@pytest.mark.parametrize(
    ("files", "path"),
    [
        ({"l": "@link:/etc"}, "l"),
        ({"a/l": "@link:../../etc"}, "a/l"),
        # Each link looks harmless on its own; one through the other leads out.
        ({"a/b/up": "@link:../..", "x": "@link:a/b/up/.."}, "x"),
        ({"d/l": "@link:missing/../../../x"}, "d/l"),
    ],
)
def test_a_link_leaves_the_tree(files: dict[str, str], path: str) -> None:
    tree = tree_of(files)
    assert tree.leaves(path)
    assert tree.resolve(path) is None
    assert not tree.exists(path)


def test_a_link_within_the_tree_or_to_nothing_does_not_leave_it() -> None:
    tree = tree_of({"a/l": "@link:../b", "b": "x", "c": "@link:nothing"})
    assert not tree.leaves("a/l")
    assert not tree.leaves("c")
    assert not tree.exists("c")


@pytest.mark.parametrize("files", [{"l": "@link:l"}, {"l": "@link:m", "m": "@link:l"}, {"l": "@link:."}])
def test_circles_end(files: dict[str, str]) -> None:
    assert tree_of(files).goes_in_circles("l")


def test_digest_sees_path_kind_mode_content_and_target() -> None:
    trees = [
        tree_of({"a": "x"}),
        tree_of({"b": "x"}),
        tree_of({"a": "y"}),
        tree_of({"a/": ""}),
        tree_of({"a": "@link:x"}),
        tree_of({"a": "@link:y"}),
        tree_of({}),
    ]
    assert len({tree.digest() for tree in trees}) == len(trees)
    assert trees[0].digest() == tree_of({"a": "x"}).digest()


def test_read_says_which_file_is_missing() -> None:
    with pytest.raises(KeyError, match="nothing"):
        tree_of({}).read("nothing")


@pytest.mark.parametrize(("path", "clean"), [("a//./b", "a/b"), ("./a", "a"), ("a", "a")])
def test_clean_path(path: str, clean: str) -> None:
    assert clean_path(path) == clean
    assert path_fault(path) is None


@pytest.mark.parametrize("path", ["", ".", "/a", "../a", "a/../b", "a\0", "x" * 256, "a/" * 1600 + "b"])
def test_path_fault(path: str) -> None:
    assert path_fault(path)
