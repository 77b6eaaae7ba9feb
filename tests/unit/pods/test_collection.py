import json

from multistep.pods.collection import artifact_arguments
from multistep.task import ArtifactConfig, collection_plan


def _entries(*artifacts) -> list[dict]:
    """Read the manifest's entries out of the flags, as the runner puts them together."""
    result = []
    for word in artifact_arguments(
        [ArtifactConfig.model_validate(entry) if isinstance(entry, dict) else entry for entry in artifacts]
    ):
        what, _, _, head, tail, *_ = word.replace("$$", "$").removeprefix("--artifact=").split("\n")
        result.append({"what": what, **json.loads(f"{{{head},{tail}}}")})
    return result


def test_odd_paths_make_valid_json() -> None:
    path = '/a "b" \\ $x ü'
    assert _entries(path)[1]["source"] == path


def test_convention_directory_is_not_copied_onto_itself() -> None:
    assert [entry["what"] for entry in _entries("/x")] == ["in-place", "collect"]
    assert [entry["what"] for entry in _entries({"source": "/logs/artifacts", "exclude": ["a"]})] == ["collect"]
    assert [entry["what"] for entry in _entries({"source": "/logs/artifacts/", "destination": "d"})] == ["collect"]


def test_type_of_what_is_skipped_is_guessed_as_in_the_reference() -> None:
    entries = _entries(
        "/d", {"source": "/e.txt", "destination": "d", "exclude": ["x"]}, {"source": "/f", "destination": "d"}
    )
    assert [(entry["what"], entry["exclude"]) for entry in entries[2:]] == [
        ("skipped-file", []),
        ("skipped-directory", []),
    ]


def test_same_source_may_be_named_again() -> None:
    assert [skipped for _, skipped in collection_plan(["/d", "/d", "/d/below"])] == [False, False, False, True]
