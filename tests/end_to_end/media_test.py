"""Pictures and histograms of a run: in its folder and in TensorBoard, without any change to the run."""
import json
import struct
import unittest

from end_to_end import support
from end_to_end.tracker_files import message, tf_records


class MediaTest(support.RunTestCase):
    def assert_events_have_media(self, run):
        """Pictures and histograms of the first attempt are those of the run folder."""
        (event_file,) = (run / "export/tensorboard").iterdir()
        images, histograms, hparams = {}, {}, []
        for record in tf_records(event_file.read_bytes()):
            event = message(record)
            for value in message(event[5][0]).get(1, []) if 5 in event else []:
                fields = message(value)
                tag = fields[1][0].decode()
                if 4 in fields:
                    images[event[2][0], tag] = message(fields[4][0])[4][0]
                elif 5 in fields:
                    histograms[event[2][0], tag] = message(fields[5][0])
                elif tag.startswith("_hparams_/"):
                    hparams.append(tag.partition("/")[2])
        self.assertEqual(["experiment", "session_start_info", "session_end_info"], hparams)
        index = [json.loads(line) for line in (run / "media/index.jsonl").read_text().splitlines()]
        self.assertEqual({(line["step"], line["name"]) for line in index}, set(images))
        for line in index:
            self.assertEqual((run / "media" / line["file"]).read_bytes(), images[line["step"], line["name"]])
        self.assertIn((1, "train/batch"), images)
        for text in (run / "histograms.jsonl").read_text().splitlines():
            line = json.loads(text)
            for name, ours in line["histograms"].items():
                theirs = histograms.pop((line["step"], name))
                self.assertEqual([ours["min"], ours["max"], ours["sum"], ours["sum_squares"]],
                                 [theirs.get(field, [0])[0] for field in (1, 2, 4, 5)])
                self.assertEqual(sum(ours["counts"]), theirs[3][0])
                self.assertEqual(ours["counts"], list(struct.unpack(f"<{len(ours['counts'])}d", theirs[7][0])))
        self.assertEqual({}, histograms)

    def test_pictures_and_histograms_are_exported_to_tensorboard_and_change_no_run(self):
        self.run_scaletrain("launch", self.recipe("plain"))
        run = self.folder / "seen"
        error = self.run_scaletrain("launch", self.recipe("seen", log={
            "every": {"steps": 1}, "to": "tensorboard", "histograms": {"steps": 10}})).stderr
        self.assertNotIn("warning: export", error)
        steps = [json.loads(line)["step"] for line in (run / "histograms.jsonl").read_text().splitlines()]
        self.assertEqual([10, 20], steps)
        first = json.loads((run / "histograms.jsonl").read_text().splitlines()[0])["histograms"]
        weights = [name for name in first if name.startswith("weights/")]
        self.assertEqual([name.replace("weights/", "gradients/") for name in weights],
                         [name for name in first if name.startswith("gradients/")])
        self.assert_events_have_media(run)
        self.assertEqual(support.inspect(self.folder / "plain")["model_digest"],
                         support.inspect(run)["model_digest"])

    def test_a_media_folder_that_cannot_be_written_is_a_warning_and_the_same_run(self):
        self.run_scaletrain("launch", self.recipe("plain"))
        run = self.folder / "blocked"
        run.mkdir()
        (run / "media").write_text("a file in the place of the folder")
        error = self.run_scaletrain("launch", self.recipe("blocked", log={"images": True})).stderr
        self.assertIn("the run continues without that picture", error)
        self.assertEqual(support.inspect(self.folder / "plain")["model_digest"],
                         support.inspect(run)["model_digest"])


if __name__ == "__main__":
    unittest.main()
