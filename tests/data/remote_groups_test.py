"""Patterns and folders of a bucket stand for their shards, in the tools and in recipes."""
import json
import subprocess
import unittest

import remote_tools_test as remote
from tools_support import PROGRAM, data, data_json

setUpModule = remote.setUpModule


class Groups(remote.RemoteTest):
    def recipe(self, **sets):
        recipe = {"model": {"name": "mlp", "num_classes": 4}, "data": {**sets, "image_size": 24},
                  "batch": {"global": 8, "per_device": 8}, "epochs": 1, "output": self.path("run"),
                  "optimizer": {"name": "sgd", "lr": 0.1}}
        return self.write("recipe.json", json.dumps(recipe))

    def run_recipe(self, command, recipe, code=0):
        done = subprocess.run([PROGRAM, "recipe", command, recipe], capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual(code, done.returncode, done.stderr)
        return json.loads(done.stdout) if command == "show" else done.stdout + done.stderr

    def test_the_tools_take_them(self):
        self.upload(self.shards())
        names = [f"{self.remote}/train-00000{i}.tar" for i in range(3)]
        for group in (self.remote, self.remote + "/", self.remote + "/train-*.tar"):
            self.assertEqual(names, data("ls", "--shards", group).splitlines())
            self.assertEqual({"shards": names}, data_json("ls", "--shards", group))
        self.assertEqual(names[1:2], data("ls", "--shards", self.remote + "/*1.tar").splitlines())
        checked = data_json("check", self.remote + "/train-*.tar")
        self.assertEqual(40, checked["folders"][0]["samples"])
        self.assertIn('no-*.tar" fits no object',
                      data("ls", "--shards", self.remote + "/no-*.tar", code=65))
        self.assertIn("requires --shards", data("ls", "--recipe", "x.json", self.remote, code=2))

    def test_recipes_hold_the_shards_that_were_found(self):
        self.upload(self.shards())
        names = [f"{self.remote}/train-00000{i}.tar" for i in range(3)]
        shown = self.run_recipe("show", self.recipe(
            train={"sources": [{"shards": self.remote + "/train-*.tar"}, {"shards": self.remote}]},
            val={"shards": [names[0], self.remote + "/*2.tar"]}))
        for source in shown["data"]["train"]["sources"]:
            self.assertEqual(names, source["shards"])
        self.assertEqual([names[0], names[2]], shown["data"]["val"]["shards"])
        self.assertIn("ok: ", self.run_recipe("check", self.recipe(
            train={"shards": self.remote + "/train-*.tar"})))
        error = self.run_recipe("check", self.recipe(train={"shards": self.remote + "/no-*.tar"}), 65)
        self.assertIn('no-*.tar" fits no object', error)
        error = self.run_recipe("check", self.recipe(train={"shards": "https://h/x-*.tar"}), 2)
        self.assertIn('"*" is not looked for on a web server', error)

    def test_what_does_not_go_with_the_shards_found_is_one_error(self):
        remote.swift.put(f"/{self.bucket}/a%20b/x.tar.gz", b"")
        error = self.run_recipe("check", self.recipe(train={"shards": self.remote}), 2)
        self.assertIn('recipe.json, with the shards that were found', error)
        self.assertIn('and x.tar.gz is compressed', error)

    def test_a_store_that_refuses_or_does_not_answer_is_named(self):
        remote.proxy.set_fault(lambda number, head: "403")
        recipe = self.recipe(train={"shards": self.remote + "/train-*.tar"})
        self.assertIn("HTTP 403", self.run_recipe("check", recipe, 74))


if __name__ == "__main__":
    unittest.main()
