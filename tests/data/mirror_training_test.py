"""Checkpoints that are copied to a real object store while training goes on, and the way back."""
import json
import os
import shutil
import signal
import tempfile
import time
import unittest

import fault_proxy
import swift_server
from end_to_end import support

FOLDER = "s3://copies"
OUTAGE_S = 3600 if support.LONG else 0  # and four saves
LONGEST_PAUSE_S = 360 if support.LONG else 0  # between two tries, each of which takes a minute


def setUpModule():
    global swift, proxy
    folder = tempfile.TemporaryDirectory(prefix="scaletrain-swift-")
    unittest.addModuleCleanup(folder.cleanup)
    swift = swift_server.Swift(folder.name)
    unittest.addModuleCleanup(swift.stop)
    swift.put("/copies")
    proxy = fault_proxy.FaultProxy(swift.port)
    unittest.addModuleCleanup(proxy.stop)


def changes_something(head):
    return head.split()[0] in (b"PUT", b"POST", b"DELETE")


def take_down(front):
    """Nothing listens at its port any more, and what is connected gets no answer."""
    front.set_fault(lambda number, head: "empty")
    front.stop()


class MirrorTrainingTest(support.RunTestCase):
    def setUp(self):
        super().setUp()
        proxy.set_fault(lambda number, head: None)
        self.place = f"{FOLDER}/{self.id().split('.')[-1]}"

    def mirrored(self, name, mirror=True, give_up_after_s=60, hidden=32, **changes):
        checkpoint = {"every": {"steps": 5}, **changes.pop("checkpoint", {})}
        if mirror:
            checkpoint["mirror"] = self.place
            changes["storage"] = {"stall_timeout_s": 1, "give_up_after_s": give_up_after_s}
        model = {"name": "mlp", "num_classes": 10, "hidden": hidden, "layers": 1}
        data = {"train": {"shards": str(support.DIGITS / "train-{000000..000003}.tar")},
                "image_size": 16, "index_cache": str(self.folder / "index")}
        return self.recipe(name, model=model, data=data, checkpoint=checkpoint,
                           optimizer={"name": "sgd", "lr": 0.05, "momentum": 0.9}, **changes)

    def scaletrain(self, *arguments, expect=0):
        result = self.run_scaletrain(*arguments, expect=expect,
                                     env=swift_server.environment(proxy.url))
        for text in (result.stdout, result.stderr):
            self.assertNotIn(swift_server.SECRET, text)
        return result

    def copies(self, place=None):
        """The steps of the finished copies, newest first."""
        listed = json.loads(self.scaletrain("data", "mirror", place or self.place, "--json").stdout)
        return [copy["step"] for copy in listed["copies"] if copy["finished"]]

    def check_copy(self, run, step):
        """The newest copy is whole, of this step, and what the run saved."""
        back = self.folder / f"back-{run.name}"
        self.scaletrain("data", "mirror", self.place + "/", "--to", back)
        path = back / f"checkpoints/step-{step:08}"
        self.assertEqual([path], list((back / "checkpoints").iterdir()))
        self.scaletrain("checkpoint", "verify", path)
        self.assertEqual(support.inspect(path)["files"], support.inspect(run)["files"])

    def test_a_run_whose_folder_is_lost_goes_on_from_its_copies_with_the_same_bits(self):
        """What docs/reference/checkpoints.md shows, of this test's own run and place:

        scaletrain launch --nproc 2 --set checkpoint.mirror=s3://BUCKET/PREFIX recipes/digits_mlp.json
        scaletrain data mirror s3://BUCKET/PREFIX
        scaletrain resume s3://BUCKET/PREFIX
        """
        self.scaletrain("launch", "--nproc", 2, self.mirrored("whole", mirror=False, steps=300))
        run = self.folder / "run"
        path = self.mirrored("run", steps=300)
        process = self.start("launch", "--nproc", 2, path, env={
            **swift_server.environment(proxy.url), "SCALETRAIN_FAULT": "slows@20"})
        support.wait_until(lambda: (run / "metrics.jsonl").exists() and
                           support.records(run, "mirror"), "the first copy")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        self.assertEqual(75, process.returncode, err)
        stopped = support.records(run, "train")[-1]["step"]
        self.assertLess(stopped, 300, "the run was over before the stop")
        self.assertEqual(stopped, support.records(run, "mirror")[-1]["step"])
        self.check_copy(run, stopped)
        shutil.rmtree(run)
        error = self.scaletrain("launch", "--nproc", 2, path, expect=2).stderr
        self.assertIn(f"{self.place}: holds checkpoints of an earlier run\n  continue it with "
                      "--resume auto", error)
        shutil.rmtree(run)
        error = self.scaletrain("launch", "--nproc", 2, "--resume", "auto", path).stderr
        self.assertIn(f"{run}: it has no checkpoint, so step-{stopped:08} was copied from "
                      f"{self.place}", error)
        self.assertEqual(support.inspect(run)["model_digest"],
                         support.inspect(self.folder / "whole")["model_digest"])
        # The recipe comes from the copies where nothing else is left.
        shutil.rmtree(run)
        error = self.scaletrain("resume", self.place, "--nproc", 2).stderr
        self.assertIn(f"continuing from {run}/checkpoints/step-00000300", error)

    def test_the_last_copy_is_whole_through_faults_of_every_kind(self):
        # test_mixed_faults has the others.
        kinds = ["damage", *(["503", "delay", "reset", "500", "429", "empty"] if support.LONG else [])]
        for kind in kinds:
            with self.subTest(kind):
                run = self.folder / kind
                self.place = f"{FOLDER}/fault-{kind}"
                meant = []

                def fault(number, head, kind=kind, meant=meant):
                    meant.append(number)
                    return kind if len(meant) % 3 == 2 else None
                proxy.set_fault(fault)
                # Two files of 9 MB: each goes in parts.
                self.scaletrain("launch", "--nproc", 1,
                                self.mirrored(kind, hidden=3000, steps=6))
                self.assertGreater(proxy.faults, 3)
                proxy.set_fault(lambda number, head: None)
                self.check_copy(run, 6)
        status, uploads = swift.request("GET", "/copies?uploads=")
        self.assertEqual((200, 0), (status, uploads.count(b"<Upload>")))

    def test_a_run_that_is_killed_while_it_copies(self):
        """Behind any request: the copies from before are there, and the next run goes on with its own."""
        path = self.mirrored("run", hidden=3000, steps=5)
        self.scaletrain("launch", "--nproc", 1, path)
        run = self.folder / "run"
        again = ("launch", "--nproc", 1, "--resume", "auto", "--allow", "steps", "--set")
        for step, last in ((6, 2), (7, 5), (8, 8)) if support.LONG else ((6, 2), (7, 8)):
            with self.subTest(last):
                meant = []

                def fault(number, head, meant=meant, last=last):
                    meant += [number] if changes_something(head) else []
                    return "hold" if len(meant) > last else None
                proxy.set_fault(fault)
                process = self.start(*again, f"steps={step}", path,
                                     env=swift_server.environment(proxy.url))
                support.wait_until(lambda meant=meant, last=last: len(meant) > last, "the request")
                for pid in support.pids_with(process.marker):
                    os.kill(pid, signal.SIGKILL)
                process.communicate()
                proxy.set_fault(lambda number, head: None)
                self.assertEqual(step - 1, self.copies()[0])
                shutil.rmtree(self.folder / "back-run", ignore_errors=True)
                self.scaletrain("data", "mirror", self.place, "--to", self.folder / "back-run")
                shutil.rmtree(run / f"checkpoints/step-{step:08}")
                self.scaletrain(*again, f"steps={step}", path)
                self.assertEqual(step, self.copies()[0])
        shutil.rmtree(self.folder / "back-run")
        self.check_copy(run, step)
        self.assertEqual(0, swift.request("GET", "/copies?uploads=")[1].count(b"<Upload>"))
        out = self.scaletrain("checkpoint", "ls", self.place).stdout
        self.assertEqual(str(step), out.split()[0])

    def test_copies_that_lag_leave_some_out_and_training_does_not_wait(self):
        proxy.set_fault(lambda number, head: "delay")
        error = self.scaletrain("launch", "--nproc", 1, self.mirrored(
            "run", steps=20, checkpoint={"every": {"steps": 1}, "keep_last": 20})).stderr
        run = self.folder / "run"
        self.assertEqual(20, len(list((run / "checkpoints").glob("step-*"))))
        copied = support.records(run, "mirror")
        self.assertEqual(20, copied[-1]["step"])
        self.assertLess(len(copied), 10)
        self.assertGreater(copied[0]["behind"], 1)
        self.assertEqual(0, copied[-1]["behind"])
        self.assertEqual(1, error.count(f"{self.place} lags: "), error)
        self.assertEqual([one["step"] for one in copied], self.copies()[::-1])

    def test_mixed_faults(self):
        proxy.set_fault(fault_proxy.mixed(0.2, (*fault_proxy.PASSING, "damage")))
        self.scaletrain("launch", "--nproc", 2, self.mirrored("mixed", steps=40))
        self.assertGreater(proxy.faults, 3)
        proxy.set_fault(lambda number, head: None)
        self.check_copy(self.folder / "mixed", 40)
        self.assertLessEqual(len(self.copies()), 3)

    def test_a_store_that_is_gone_stops_the_run_or_does_not_and_the_older_copy_stays(self):
        # A run that goes on without its store is below.
        for policy, status in (("continue", 0), ("stop", 74)) if support.LONG else (("stop", 74),):
            with self.subTest(policy):
                run = self.folder / policy
                self.place = f"{FOLDER}/gone-{policy}"
                path = self.mirrored(policy, steps=5, give_up_after_s=0.5,
                                     checkpoint={"on_failure": policy})
                self.scaletrain("launch", "--nproc", 1, path)
                self.assertEqual([5], self.copies())
                proxy.set_fault(lambda number, head: "503" if changes_something(head) else None)
                error = self.scaletrain("launch", "--nproc", 1, "--resume", "auto", "--allow",
                                        "steps", "--set", "steps=10", path, expect=status).stderr
                self.assertIn("failed after", error)
                self.assertIn("HTTP 503", error)
                self.assertEqual(policy == "continue",
                                 "has no copy of the last checkpoint, which" in error, error)
                self.assertEqual([10, 5], sorted((int(folder.name[5:]) for folder in
                                                  (run / "checkpoints").glob("step-*")),
                                                 reverse=True))
                proxy.set_fault(lambda number, head: None)
                self.assertEqual([5], self.copies())
                # The store is back: the run that goes on copies what it lacks.
                self.scaletrain("launch", "--nproc", 1, "--resume", "auto", "--allow", "steps",
                                "--set", "steps=12", path)
                self.assertEqual(12, self.copies()[0])
                self.check_copy(run, 12)

    def test_a_store_that_cannot_be_read_when_a_run_goes_on(self):
        path = self.mirrored("run", steps=5, give_up_after_s=0.5)
        self.scaletrain("launch", "--nproc", 1, path)
        proxy.set_fault(lambda number, head: "503" if number < 40 else None)
        again = ("launch", "--nproc", 1, "--resume", "auto", "--allow", "steps", "--set")
        error = self.scaletrain(*again, "steps=6", "--set", "checkpoint.on_failure=continue",
                                path).stderr
        self.assertIn("the run continues from the newest checkpoint in its own folder", error)
        shutil.rmtree(self.folder / "run")
        proxy.set_fault(lambda number, head: "503")
        error = self.scaletrain(*again, "steps=7", path, expect=74).stderr
        self.assertIn("HTTP 503", error)
        self.assertFalse((self.folder / "run/checkpoints/step-00000007").exists())

    def test_a_copy_that_is_damaged_or_not_finished_is_passed_over(self):
        path = self.mirrored("run", steps=12)
        self.scaletrain("launch", "--nproc", 1, path)
        newest, older = self.copies()[:2]
        prefix = self.place.removeprefix("s3:/") + f"/checkpoints/step-{newest:08}"
        status, model = swift.request("GET", f"{prefix}/model.safetensors")
        self.assertEqual(200, status)
        swift.put(f"{prefix}/model.safetensors", model[:-1] + bytes([model[-1] ^ 1]))
        shutil.rmtree(self.folder / "run")
        error = self.scaletrain("launch", "--nproc", 1, "--resume", "auto", path).stderr
        self.assertIn(f"step-{newest:08}/model.safetensors: has the XXH3-128", error)
        self.assertIn(f"so step-{older:08} was copied from", error)
        self.check_copy(self.folder / "run", 12)

    def test_a_bucket_that_is_not_there_is_one_error_before_training(self):
        self.place = "s3://absent/run"
        error = self.scaletrain("launch", "--nproc", 1, self.mirrored("run"), expect=65).stderr
        self.assertIn("s3://absent/run/checkpoints: HTTP 404, NoSuchBucket", error)
        self.assertEqual([], list((self.folder / "run").glob("checkpoints/*")))
        error = self.scaletrain("resume", f"{FOLDER}/nothing", expect=65).stderr
        self.assertIn("has no checkpoint", error)

    def test_a_store_that_is_down_for_a_while_has_the_newest_when_it_is_back(self):
        """Nothing listens at its port for some saves; the run goes on, and says how much waits."""
        front = fault_proxy.FaultProxy(swift.port)
        port = front.server_address[1]
        run = self.folder / "run"
        path = self.mirrored("run", steps=10_000_000, give_up_after_s=60 if support.LONG else 0.5,
                             checkpoint={"on_failure": "continue"})
        process = self.start("launch", "--nproc", 1, path, env={
            **swift_server.environment(front.url), "SCALETRAIN_FAULT": "slows@1"})
        support.wait_until(lambda: (run / "metrics.jsonl").exists() and
                           support.records(run, "mirror"), "the first copy")
        take_down(front)
        back = time.monotonic() + OUTAGE_S
        log = run / "logs/attempt_0/0/stderr.log"
        support.wait_until(lambda: "continues without a copy" in log.read_text(), "the warning")
        before = support.newest_saved(run)
        support.wait_until(lambda: time.monotonic() >= back and
                           support.newest_saved(run) >= before + 20, "four more saves",
                           OUTAGE_S + 60)
        lost = support.newest_saved(run)
        self.assertLess(support.records(run, "mirror")[-1]["step"], before)
        front = fault_proxy.FaultProxy(swift.port, own_port=port)
        self.addCleanup(front.stop)
        support.wait_until(lambda: support.records(run, "mirror")[-1]["step"] >= lost,
                           "a copy of what was saved meanwhile", 120 + LONGEST_PAUSE_S)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=support.TIMEOUT_S)
        self.assertEqual(75, process.returncode, err)
        # The console is a pipe that nobody has read meanwhile.
        self.assertRegex(log.read_text(), "continues without a copy of a checkpoint of [0-9]+ bytes in "
                                          f"{self.place}, which is tried again")
        stopped = support.newest_saved(run)
        self.assertEqual(stopped, self.copies()[0])
        self.check_copy(run, stopped)

    def test_a_store_that_is_down_stops_a_run_that_shall_have_copies(self):
        front = fault_proxy.FaultProxy(swift.port)
        run = self.folder / "run"
        path = self.mirrored("run", steps=2000, give_up_after_s=0.5)
        process = self.start("launch", "--nproc", 1, path, env={
            **swift_server.environment(front.url), "SCALETRAIN_FAULT": "slows@1"})
        support.wait_until(lambda: (run / "metrics.jsonl").exists() and
                           support.records(run, "mirror"), "the first copy")
        take_down(front)
        _, err = process.communicate(timeout=support.TIMEOUT_S)
        self.assertEqual(74, process.returncode, err)
        self.assertRegex(err, "while a checkpoint of [0-9]+ bytes was copied there")
        self.run_scaletrain("checkpoint", "verify", run)
        self.assertGreaterEqual(self.copies()[0], 5)



if __name__ == "__main__":
    unittest.main()
