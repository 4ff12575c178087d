"""No source names the temporary folder itself: another user can put a link where a name is predictable."""
import re
import unittest

import tracked

# Where TMPDIR is read, and a file without a name is made there.
ALLOWED = {"launcher/platform/temporary_folder.cpp", "lib/storage/unpacked_file.cpp"}
# Those that add a random name to it.
CALLERS = {"launcher/jobs/foreign_job.cpp", "launcher/jobs/file_timer.cpp"}
NAMES = re.compile(r'temp_directory_path|"/tmp|"TMPDIR"|\bP_tmpdir\b|\b(?:tmpnam|tempnam|mktemp)\s*\(')
CALLS = re.compile(r"(?<!\w)temporary_folder\(\)")


def uses(text, pattern):
    """Lines that use it; comments are left out."""
    lines = (line.split("//")[0] for line in text.split("\n"))
    return [number for number, line in enumerate(lines, 1) if pattern.search(line)]


class TemporaryFolder(unittest.TestCase):
    def test_names_are_made_in_one_place(self):
        found = []
        for path in tracked.files("lib/**/*.h", "lib/**/*.cpp", "launcher/**/*.h",
                                  "launcher/**/*.cpp", "app/**/*.h", "app/**/*.cpp"):
            text, name = tracked.text(path), str(path)
            if name in ALLOWED or name == "launcher/platform/temporary_folder.h":
                continue
            found += [f"{name}:{number}" for number in uses(text, NAMES)]
            if name not in CALLERS:
                found += [f"{name}:{number}" for number in uses(text, CALLS)]
        self.assertEqual([], found, "use ScratchFolder or make_temporary_folder")

    def test_uses_are_found(self):
        for line in ["fs::temp_directory_path() / name", 'open("/tmp/x")', 'getenv("TMPDIR")']:
            self.assertEqual([2], uses("\n" + line, NAMES))
        self.assertEqual([1], uses("f(temporary_folder() / name)", CALLS))
        self.assertEqual([], uses("// temp_directory_path()", NAMES))


if __name__ == "__main__":
    unittest.main()
