"""`scaletrain data split --group-by`: an expression that does not fit the keys is no silence."""
import os
import subprocess
import unittest

from tools_support import PROGRAM, FolderTest, data, data_json, picture, write_tar


class Groups(FolderTest):
    def setUp(self):
        super().setUp()
        members = []
        for i in range(40):
            members += [(f"patient{i // 4:02d}_{i}.jpg", picture(i)), (f"patient{i // 4:02d}_{i}.cls", b"0")]
        write_tar(self.path("a.tar"), members)

    def split(self, *flags):
        return ["split", self.path("a.tar"), "--out", self.path("out"), "--val", 0.3, "--overwrite",
                *flags]

    def test_an_expression_that_matches_no_key_is_refused(self):
        self.assertEqual(
            "--group-by: matches 0 of 40 keys; the first is patient00_0\n"
            "  write an expression that occurs in the keys; scaletrain data ls lists them\n",
            data(*self.split("--group-by", "^(pateint[0-9]+)"), code=2))
        self.assertFalse(os.path.exists(self.path("out")))

    def test_one_that_matches_some_is_warned_of(self):
        done = subprocess.run([PROGRAM, "data", *map(str, self.split("--group-by", "patient0[1-9]"))],
                              capture_output=True, text=True, timeout=60, check=True)
        self.assertIn("warning: --group-by does not match 4 of 40 keys; each of these samples is a group by "
                      "itself; the first: patient00_0\n", done.stderr)
        self.assertIn("\n13 groups\n", done.stdout)

    def test_groups_are_counted(self):
        done = subprocess.run([PROGRAM, "data", *map(str, self.split("--group-by", "patient[0-9]+"))],
                              capture_output=True, text=True, timeout=60, check=True)
        self.assertEqual("", done.stderr)
        self.assertTrue(done.stdout.endswith("\n10 groups\n"), done.stdout)
        self.assertEqual(10, data_json(*self.split("--group-by", "patient[0-9]+"))["groups"])
        self.assertEqual(40, data_json(*self.split())["groups"])  # each picture
        self.assertNotIn("groups", data(*self.split()))


if __name__ == "__main__":
    unittest.main()
