"""A worker with models of its own: recipes are checked by the registry beside it; the worker is a script."""

import json
import subprocess
import unittest

from launcher.launch_recipe_test import RecipeTestCase
from launcher.launch_support import LIMIT_S, SCALETRAIN

MODEL = {"name": "own", "num_classes": 10, "width": 16}


def version():
    done = subprocess.run([SCALETRAIN, "--version"], capture_output=True, text=True, check=True, timeout=LIMIT_S)
    return done.stdout.split()[1]


class OwnWorker(RecipeTestCase):
    def setUp(self):
        super().setUp()
        self.registry = self.folder / "worker.registry.json"
        self.script()
        self.write_registry()

    def write_registry(self, **changes):
        self.registry.write_text(json.dumps({
            "version": 1, "scaletrain": version(), "models": [{
                "name": "own", "help": "h", "task": "image_classification", "rules": [],
                "keys": [{"key": "width", "type": "integer", "default": 8, "least": 1, "most": 64,
                          "help": "h"}]}], **changes}))

    def own_recipe(self, worker=None, **keys):
        named = {} if worker is None else {"worker": str(worker)}
        path = self.recipe(model={**MODEL, **keys}, **named)
        path.write_text(json.dumps(json.loads(path.read_text()), indent=1))
        return path

    def refused(self, *arguments, found):
        done = self.run_launcher(*arguments, expect=2)
        self.assertIn(found, done.stderr)
        self.assertEqual([], self.called())
        return done.stderr

    def test_its_models_keys_are_checked_with_file_and_line(self):
        path = self.own_recipe(widht=3)
        line = path.read_text().splitlines().index('  "widht": 3') + 1
        for command in (("launch",), ("recipe", "check"), ("recipe", "show"), ("explain", "launch")):
            with self.subTest(command):
                self.refused(*command, "--worker", self.worker, path,
                             found=f'{path}:{line}: /model/widht: "widht" is not a key here\n  did you mean "width"?')
        for value, found in ((65, "65 is out of range\n  use an integer from 1 to 64"),
                             ("wide", '"wide" is not an integer\n  use an integer from 1 to 64')):
            self.refused("launch", "--worker", self.worker, self.own_recipe(width=value),
                         found=f"/model/width: {found}")

    def test_what_cannot_be_a_worker_is_one_error(self):
        path = self.own_recipe()
        self.refused("launch", "--worker", "/etc/passwd", path,
                     found='--worker: "/etc/passwd" is not an executable file\n  name a worker program')
        self.refused("launch", self.own_recipe(worker="/etc/passwd"), found="/worker: \"/etc/passwd\" is not an "
                                                                            "executable file\n  name a worker "
                                                                            "program, here or by --worker PATH")
        path = self.own_recipe()
        self.registry.unlink()
        self.refused("launch", "--worker", self.worker, path,
                     found=f"a worker of your own has a list beside it, and {self.registry} is missing")
        for text in ("", "{", "[]", '{"version": 1}'):
            self.registry.write_text(text)
            error = self.refused("launch", "--worker", self.worker, path,
                                 found=f"{self.registry}: is damaged: ")
            self.assertEqual(2, len(error.splitlines()), error)
        self.write_registry(scaletrain="0.0.0")
        self.refused("launch", "--worker", self.worker, path,
                     found=f"{self.registry}: was written by scaletrain 0.0.0, and this is {version()}\n"
                           "  build the worker again, with this version")

    def test_a_run_remembers_its_worker(self):
        self.run_launcher("launch", "--worker", self.worker, self.own_recipe())
        self.assertEqual(1, len(self.called()))
        self.assertEqual(16, json.loads((self.folder / "recipe0").read_text())["model"]["width"])
        self.checkpoint(5)
        self.run_launcher("resume", self.run_folder)
        self.assertEqual(2, len(self.called()))
        self.run_launcher("resume", "--allow", "model.width", "--set", "model.width=17", self.run_folder)
        self.refuse_other_key()

        moved = self.folder / "moved"
        self.worker.rename(moved)
        self.assertIn(f'/worker: "{self.worker}" is not an executable file',
                      self.run_launcher("resume", self.run_folder, expect=2).stderr)
        self.registry.rename(f"{moved}.registry.json")
        self.run_launcher("resume", "--worker", moved, self.run_folder)
        self.assertEqual(4, len(self.called()))

    def refuse_other_key(self):
        error = self.run_launcher("resume", "--allow", "model.widht", self.run_folder, expect=2).stderr
        self.assertIn('--allow: "model.widht" is not a key of a recipe\n  did you mean "model.width"?', error)

    def test_a_recipe_names_its_worker_too(self):
        self.run_launcher("launch", self.own_recipe(worker=self.worker))
        self.assertEqual(1, len(self.called()))

    def test_schema_and_reference_of_its_models(self):
        for command, text in (("schema", '"own"'), ("reference", "### `own`")):
            self.assertIn(text, self.run_launcher("recipe", command, "--worker", self.worker).stdout)
            self.assertNotIn(text, self.run_launcher("recipe", command).stdout)


if __name__ == "__main__":
    unittest.main()
