"""A disk that fails while a run saves: the run stops or goes on as its recipe says, the checkpoints
from before are as they were, and the message says what failed."""

import errno
import os
import shutil
import subprocess
import unittest

from end_to_end import support

ALWAYS = 99
# Call, error, how often, exit code, what is said: of the second of three checkpoints.
FAULTS = [
    ("fsync", errno.EIO, 1, 0, "EIO.*is written once more"),
    ("fsync", errno.EIO, ALWAYS, 74, r"cannot sync: .*EIO.*step 4 needs \d+ bytes, \d+ are free"),
    ("fallocate", errno.ENOSPC, ALWAYS, 74, r"reserve \d+ bytes.*ENOSPC.*step 4 needs \d+ bytes"),
    ("open", errno.EDQUOT, ALWAYS, 74, r"EDQUOT.*step 4 needs \d+ bytes"),
    ("mkdir", errno.EROFS, ALWAYS, 74, "cannot make the folder: .*EROFS"),
    ("rename", errno.EXDEV, ALWAYS, 74, "rename step-00000004.tmp.*EXDEV"),
    ("rename", errno.EACCES, 1, 0, "EACCES.*is written once more"),
]
# What fails alone beside the checkpoint's folder: its name, the call, and what is said when it fails
# for good (None: then the run ends). The short form has the first row of each name.
BESIDE = [
    ("unlink", "unlink", errno.EBUSY, ".removed.tmp", "EBUSY.*; it is kept, and removed"),
    ("unlink", "unlink", errno.EPERM, ".removed.tmp", "EPERM.*; it is kept, and removed"),
    ("rename", "rename", errno.EIO, ".latest.tmp", "EIO.*; latest and best may name older checkpoints"),
    ("symlink", "symlink", errno.EOPNOTSUPP, "latest",
     "EOPNOTSUPP.*; .* are files that hold the name"),
    ("link", "link", errno.ENOSYS, "lease.json", "ENOSYS.*; the lock is made with O_EXCL"),
    ("statfs", "statvfs", errno.ENOSYS, "checkpoints",
     "ENOSYS.*; a checkpoint is written without knowing"),
    ("mkdir", "mkdir", errno.EIO, "/logs", "EIO.*; the workers write to the console instead"),
    ("open of a log", "open", errno.EACCES, "/logs/",
     "EACCES.*; the workers write to the console instead"),
    ("open of a lock", "open", errno.EIO, "lease.json", None),
    ("fsync of a log", "fsync", errno.EIO, "metrics.jsonl",
     "EIO.*; its last lines may be lost if the machine goes down"),
    ("fsync of a log", "fsync", errno.EIO, "console.log",
     "EIO.*; its last lines may be lost if the machine goes down"),
    ("fsync of a record", "fsync", errno.EIO, ".environment.json",
     "EIO.*; the run goes on without that file"),
    ("rename of a record", "rename", errno.EIO, ".finished.json",
     "EIO.*; the run goes on without that file"),
    ("ENOSPC on a log", "write", errno.ENOSPC, "metrics.jsonl",
     "ENOSPC.*; training goes on without the lines"),
    ("EIO on a log", "write", errno.EIO, "metrics.jsonl",
     "EIO.*; training goes on without the lines"),
    ("EIO on a log", "write", errno.EIO, "console.log",
     "EIO.*; training goes on without the lines"),
    ("EIO on a log", "write", errno.EIO, "/logs/", ""),  # which the workers cannot say
]


class DiskFaultsTest(support.RunTestCase):
    digest = None

    def write(self, name, **checkpoint):
        # 18 MB of weights: files that are written past the page cache.
        return self.recipe(name, steps=6, test=None, batch={"global": 16, "per_device": 8},
                           model={"name": "mlp", "num_classes": 10, "hidden": 6000, "layers": 1,
                                  "freeze": "fc1.*"},
                           checkpoint={"every": {"steps": 2}, **checkpoint})

    def launch(self, path, expect=0, ranks=1, **faults):
        env = {**self.faulty_libc(), **faults} if faults else None
        return self.run_scaletrain("launch", "--nproc", ranks, path, expect=expect, env=env).stderr

    def alone(self):
        """The digest of a run whose disk works; the run is trained once for all tests."""
        if self.digest is None:
            self.launch(self.write("alone"))
            type(self).digest = support.inspect(self.folder / "alone")["model_digest"]
        return self.digest

    def check_goes_on(self, name, path):
        """Nothing half written is there, and the run ends as one whose disk works."""
        checkpoints = self.folder / name / "checkpoints"
        self.assertEqual([], list(checkpoints.glob("*.tmp.*")))
        for checkpoint in checkpoints.glob("step-*"):
            self.run_scaletrain("checkpoint", "verify", checkpoint)
        self.run_scaletrain("launch", "--nproc", 1, "--resume", "auto", path)
        self.assertEqual(self.alone(), support.inspect(self.folder / name)["model_digest"])

    def test_a_save_that_fails_stops_the_run_or_not_and_harms_no_other(self):
        for number, (call, error, times, status, text) in enumerate(FAULTS):
            may_continue = status and (support.LONG or call in ("fsync", "mkdir"))
            for on_failure in ("stop", "continue") if may_continue else ("stop",):
                with self.subTest(call=call, error=errno.errorcode[error], on_failure=on_failure):
                    name = f"{number}-{on_failure}"
                    path = self.write(name, on_failure=on_failure)
                    fault = f"{call} {error} step-00000004.tmp {times}"
                    goes_on = status == 0 or on_failure == "continue"
                    said = self.launch(path, 0 if goes_on else status, FAULTY_SAVE=fault)
                    self.assertRegex(said, f"(?s){text}")
                    steps = [one["step"] for one in
                             support.records(self.folder / name, "checkpoint")]
                    if status == 0:
                        self.assertEqual([2, 4, 6], steps)
                    else:  # a run that stops may have begun the last one already
                        self.assertIn(steps, ([2, 6],) if goes_on else ([2], [2, 6]))
                    if status and goes_on:
                        self.assertIn("training continues without that checkpoint", said)
                    self.check_goes_on(name, path)

    def small(self, name, **more):
        return self.recipe(name, steps=4, validate={"every": {"steps": 2}}, test=None,
                           batch={"global": 16, "per_device": 16}, **more,
                           model={"name": "mlp", "num_classes": 10, "hidden": 8, "layers": 1},
                           checkpoint={"every": {"steps": 1}, "keep_last": 1, "keep_best": 0})

    def test_housekeeping_that_fails_is_a_warning(self):
        beside = BESIDE if support.LONG else [
            row for number, row in enumerate(BESIDE)
            if row[0] not in {other[0] for other in BESIDE[:number]}]
        for number, (fault, call, error, part, text) in enumerate(beside):
            times_of_all = (1, ALWAYS) if support.LONG or number == 0 else (ALWAYS,)
            for times in times_of_all if text is not None else (1,):
                with self.subTest(fault, error=errno.errorcode[error], part=part, times=times):
                    name = f"beside-{number}-{times}"
                    said = self.launch(self.small(name),
                                       FAULTY_SAVE=f"{call} {error} {part} {times}")
                    checkpoint = self.folder / name / "checkpoints/step-00000004"
                    self.run_scaletrain("checkpoint", "verify", checkpoint)
                    warnings = [line for line in said.splitlines() if "warning: " in line]
                    if times == 1 and fault not in ("link", "fsync of a log"):  # tried once
                        self.assertEqual([], warnings)
                        continue
                    if not text:
                        continue
                    # Not one at each save; the launcher looks at the links too, and samples devices into /logs.
                    twice = call == "rename" or "/logs" in part
                    self.assertLessEqual(len(warnings), 2 if twice else 1, said)
                    self.assertRegex("\n".join(warnings), text)
                    if call not in ("symlink", "link") and "/logs" not in part:  # another way
                        self.assertRegex(said, r"not done +\d+ times something beside training failed")
                    if call == "unlink":  # what stayed goes as soon as it can
                        self.run_scaletrain("resume", self.folder / name, "--set", "steps=5",
                                            "--allow", "steps")
                        self.assertEqual([], list(checkpoint.parent.glob("*.tmp.*")))

    def test_a_run_that_was_copied_without_links_resumes(self):
        self.launch(self.small("run"))
        copy = self.folder / "copy"
        shutil.copytree(self.folder / "run", copy)  # follows links, as cp -rL
        self.assertFalse((copy / "checkpoints/latest").is_symlink())
        self.run_scaletrain("resume", copy, "--set", "steps=5", "--allow", "steps")
        self.assertEqual("step-00000005", os.readlink(copy / "checkpoints/latest"))
        self.assertEqual([], list((copy / "checkpoints").glob(".*")))

    def test_a_limit_of_file_sizes_is_named_and_kills_nobody(self):
        for kilobytes, status, text in (
                (16, 74, r"cannot write: File too large \(EFBIG: the limit of file sizes is ulimit -f"),
                (64, 0, r"metrics.jsonl: File too large \(EFBIG.*ulimit -f.*training goes on")):
            path = self.small(f"limit-{kilobytes}", log={"every": {"steps": 1}})
            if status == 0:
                (self.folder / f"limit-{kilobytes}").mkdir()
                (self.folder / f"limit-{kilobytes}/metrics.jsonl").write_text("{}\n" * 21770)
            done = subprocess.run(
                ["bash", "-c", f"ulimit -f {kilobytes}; exec \"$@\"", "bash", support.SCALETRAIN,
                 "launch", path], capture_output=True, text=True, timeout=support.TIMEOUT_S,
                check=False)
            self.assertEqual(status, done.returncode, done.stderr)
            self.assertRegex(done.stderr, f"(?s){text}")

    def test_writes_that_are_short_or_interrupted_are_not_seen(self):
        path = self.write("short")
        self.launch(path, FAULTY_WRITE="1")
        self.check_goes_on("short", path)

    def test_a_disk_without_room_for_the_optimizers_state_ends_the_run_before_it_trains(self):
        disk = self.folder / "state-disk"
        path = self.recipe("run", steps=2, test=None, batch={"global": 16, "per_device": 8},
                           model={"name": "mlp", "num_classes": 10, "hidden": 600, "layers": 1},
                           optimizer={"name": "adamw", "lr": 0.001},
                           offload={"optimizer": True, "optimizer_folder": str(disk)})
        said = self.launch(path, 74, FAULTY_SAVE=f"fallocate {errno.ENOSPC} state-disk {ALWAYS}")
        self.assertRegex(said, r"cannot reserve \d+ bytes behind 0 of the optimizer's state: .*"
                               r"ENOSPC.*\n.*free space on this disk")
        self.assertFalse((self.folder / "run/metrics.jsonl").exists())
        self.assertEqual([], list(disk.iterdir()))
        self.launch(path)

    def test_tensors_that_cannot_be_hard_linked_are_written(self):
        errors = [errno.EMLINK, errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP]
        for error in errors if support.LONG else errors[:1]:
            name = errno.errorcode[error]
            path = self.write(name, incremental=True)
            said = self.launch(path, FAULTY_SAVE=f"link {error} step-00000006.tmp {ALWAYS}")
            self.assertRegex(said, f"cannot link .*{name}.*; unchanged tensors are written again")
            self.assertEqual([0, 0, 0], [one["linked"] for one in support.records(
                self.folder / name, "checkpoint")])
            self.check_goes_on(name, path)


if __name__ == "__main__":
    unittest.main()
