"""scaletrain k8s: a parser that is not ours reads its YAML, and the API's own models know each field."""

import json
import os
import pathlib
import random
import subprocess
import unittest

import yaml

import peer
from launcher import k8s_reference
from launcher.launch_recipe_test import RecipeTestCase

LONG = os.environ.get("SCALETRAIN_LONG") == "1"
HOSTILE = 10_000 if LONG else 200
IN_A_LAUNCH = 10
REFERENCE = pathlib.Path(__file__).with_name("k8s_reference.json")
KINDS = {"indexed-job": ["ConfigMap", "Service", "Job"], "jobset": ["ConfigMap", "JobSet"],
         "pytorchjob": ["ConfigMap", "PyTorchJob"]}
FLAGS = [[], ["--namespace", "ml", "--cpus-per-node", "16", "--mem", "64Gi", "--env", "A=b=c", "--secret", "s3",
              "--set", "seed=3", "--max-restarts", "2"]]


class Kubernetes(RecipeTestCase):
    def text(self, *arguments):
        done = self.run_launcher("k8s", self.recipe(output="/runs/test"), "--image", "image:1",
                                 "--volume", "runs:/runs", *arguments)
        self.assertEqual("", done.stderr)
        return done.stdout

    def known(self):
        """The fields that the API's models have accepted, by kind."""
        return json.loads(REFERENCE.read_text())["fields"]

    def unknown(self, manifest):
        return k8s_reference.fields(manifest) - set(self.known()[manifest["kind"]])

    def test_every_kind_is_what_the_api_knows(self):
        texts = []
        for kind, kinds in KINDS.items():
            for more in FLAGS:
                with self.subTest(kind=kind, more=more):
                    texts.append(self.text("--kind", kind, "--nodes", 4, "--gpus-per-node", 8, *more))
                    found = list(yaml.safe_load_all(texts[-1]))
                    self.assertEqual(kinds, [manifest["kind"] for manifest in found])
                    for manifest in found:
                        self.assertEqual(set(), self.unknown(manifest))
        if LONG:
            again = subprocess.run([peer.python("kubeflow"), k8s_reference.__file__], input="---\n".join(texts),
                                   capture_output=True, text=True, timeout=600)
            self.assertEqual("", again.stderr)
            self.assertEqual(REFERENCE.read_text(), again.stdout)

    def test_fields_outside_of_the_kubernetes_models_are_noticed(self):
        job = list(yaml.safe_load_all(self.text("--nodes", 2)))[-1]
        job["spec"]["podFailurePolicies"] = {}
        job["spec"]["completions"] = "2"
        self.assertEqual({"spec.podFailurePolicies: dict", "spec.completions: str"}, self.unknown(job))

    def test_the_recipe_travels_as_it_is_written(self):
        recipe = self.recipe(output="/runs/test")
        text = "// a comment\n" + recipe.read_text() + "\n"
        recipe.write_text(text)
        child = self.folder / "child.json"
        child.write_text('{"extends": "recipe.json", "seed": 3}\n')
        done = self.run_launcher("k8s", child, "--image", "i", "--volume", "runs:/runs")
        found = list(yaml.safe_load_all(done.stdout))
        self.assertEqual({"child.json": child.read_text(), "recipe.json": text}, found[0]["data"])
        pod = found[-1]["spec"]["template"]["spec"]
        self.assertEqual("/etc/scaletrain/child.json", pod["containers"][0]["args"][-1])

    def test_a_run_that_would_be_lost_is_told(self):
        done = self.run_launcher("k8s", self.recipe(), "--image", "i")
        self.assertIn("the run's folder is not on a volume", done.stderr)

    def test_mistakes_are_refused(self):
        recipe = self.recipe()
        child = self.folder / "child.json"
        child.write_text(json.dumps({"extends": str(recipe)}))
        odd = self.folder / "a b.json"
        odd.write_text(recipe.read_text())
        for words, error in [
            ([recipe, "--kind", "pod"], "--kind: \"pod\" is not allowed"),
            ([recipe, "--nodes", "0"], "--nodes: \"0\" is not allowed"),
            ([recipe, "--name", "Run"], "--name: \"Run\" is not allowed"),
            ([recipe, "--name", "r" * 51], "is not allowed"),
            ([recipe, "--volume", "claim"], "--volume: \"claim\" is not allowed"),
            ([recipe, "--env", "=x"], "--env: \"=x\" is not allowed"),
            ([recipe, "--set", "optimiser.lr=1"], "\"optimiser\""),
            ([recipe, "--set", "batch={\"global\":12,\"per_device\":4}", "--nodes", "5"], "5 ranks"),
            ([child], "extends a file in another folder"),
            ([odd], "cannot be a key of a ConfigMap"),
        ]:
            with self.subTest(words=words):
                done = self.run_launcher("k8s", *words, "--image", "i", expect=2)
                self.assertIn(error, done.stderr)
                self.assertEqual("", done.stdout)

    def test_names_are_made_of_the_recipe_s(self):
        for name, expected in [("Digits.ResNet_18", "digits-resnet-18"), ("3d", "run-3d"),
                               ("_x_", "x"), ("_", "run")]:
            done = self.run_launcher("k8s", self.recipe(name=name, output="/r/x"), "--image", "i",
                                     "--volume", "r:/r")
            self.assertEqual(expected, next(yaml.safe_load_all(done.stdout))["metadata"]["name"])

    def test_hostile_values_arrive_as_they_are(self):
        """As image and variable, read by a parser that is not ours."""
        chooser = random.Random(11)
        pieces = ["'", '"', "\\", "\n", "\t", ": ", " #", "- ", "{}", "[", "&a", "*a", "!t", "|", ">",
                  "%", "@", "`", "yes", "null", "1e3", "$(x)", "é", "\u2028", "\x85", "\ufeff",
                  "\x7f", "\U0001f600", "\x01", " ", "---", "..."]
        recipe = self.recipe(output="/runs/test")
        for _ in range(HOSTILE // IN_A_LAUNCH):
            values = ["".join(chooser.choice(pieces) for _ in range(chooser.randint(1, 6)))
                      for _ in range(IN_A_LAUNCH)]
            variables = [word for number, value in enumerate(values)
                         for word in ("--env", f"A{number}={value}")]
            process = self.start("k8s", recipe, "--image", values[0], *variables,
                                 "--volume", "r:/runs")
            out, error = process.communicate()
            self.assertEqual(0, process.returncode, (values, error))
            pod = list(yaml.safe_load_all(out))[-1]["spec"]["template"]["spec"]["containers"][0]
            self.assertEqual(values[0], pod["image"])
            self.assertEqual(values, [variable["value"] for variable in pod["env"]][:IN_A_LAUNCH])


if __name__ == "__main__":
    unittest.main()
