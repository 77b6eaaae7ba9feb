"""Small trees for the tests of this folder."""

from multistep.task import Entry, FileTree, LoadedTask, load_task

STEP = '[[steps]]\nname = "s1"\n'
FILES = {
    "environment/Dockerfile": "FROM scratch\n",
    "steps/s1/instruction.md": "do it\n",
    "steps/s1/tests/test.sh": "#!/bin/sh\n",
}


def tree_of(files: dict[str, str]) -> FileTree:
    """Text is a file, `@link:target` a symbolic link, a path that ends in a slash a directory."""
    entries = {}
    for path, text in files.items():
        if path.endswith("/"):
            entries[path.rstrip("/")] = Entry("directory", 0o755)
        elif text.startswith("@link:"):
            entries[path] = Entry("symlink", 0o777, target=text.removeprefix("@link:"))
        else:
            entries[path] = Entry("file", 0o644, text.encode())
    return FileTree(entries)


def task_tree(toml: str = STEP, **files: str) -> FileTree:
    return tree_of({"task.toml": toml, **FILES, **files})


def load(toml: str = STEP, files: dict[str, str] | None = None) -> LoadedTask:
    return load_task(tree_of({"task.toml": toml, **FILES, **(files or {})}))
