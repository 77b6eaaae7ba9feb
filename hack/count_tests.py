"""Add up the results of several test runs, and end with the one line that counts them."""

import sys
from pathlib import Path
from xml.etree import ElementTree

total = failed = skipped = 0
for path in map(Path, sys.argv[1:]):
    for suite in ElementTree.parse(path).iter("testsuite"):
        counts = {key: int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped")}
        bad = counts["failures"] + counts["errors"]
        print(
            f"{path.stem:10} {counts['tests'] - bad - counts['skipped']:5} passed, {bad} failed, {counts['skipped']} skipped"
        )
        total += counts["tests"]
        failed += bad
        skipped += counts["skipped"]
print(f"{total - failed - skipped} passed, {failed} failed, {skipped} skipped")
sys.exit(1 if failed or not total else 0)
