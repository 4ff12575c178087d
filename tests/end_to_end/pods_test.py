"""What `scaletrain k8s` prints, run as a cluster would: network namespaces with addresses and names
of their own stand for the pods, with the variables that Kubernetes and its operators set."""

import os
import shutil
import subprocess
import unittest

import yaml

from end_to_end.support import SCALETRAIN, TIMEOUT_S, RunTestCase, records

ADDRESSES = ["10.99.79.1", "10.99.79.2"]


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("ip"), "needs root and iproute2 for pods")
class Pods(RunTestCase):
    alone = None  # the chain of a run on one node, trained once for all tests

    def setUp(self):
        super().setUp()
        self.pods = [f"st{os.getpid()}-pod{number}" for number in range(2)]
        for pod in self.pods:
            ip("netns", "add", pod)
            self.addCleanup(ip, "netns", "delete", pod)
        first, second = self.pods
        ip("-n", first, "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", second)
        for pod, address in zip(self.pods, ADDRESSES):
            ip("-n", pod, "address", "add", f"{address}/24", "dev", "wire")
            ip("-n", pod, "link", "set", "wire", "up")
            ip("-n", pod, "link", "set", "lo", "up")

    def job(self, recipe, kind):
        done = self.run_scaletrain("k8s", recipe, "--image", "i", "--nodes", 2, "--kind", kind,
                                   "--name", "run", "--volume", f"runs:{self.folder}")
        return list(yaml.safe_load_all(done.stdout))[-1]

    def start_pod(self, number, container, recipe, variables):
        """The container's command line in pod `number`; names resolve as the cluster's would."""
        hosts = self.folder / "hosts"
        hosts.write_text("127.0.0.1 localhost\n"
                         f"{ADDRESSES[0]} run-0.run run-node-0-0.run run-master-0\n")
        words = [str(SCALETRAIN) if word == "scaletrain" else word for word in container["command"]]
        words += [str(recipe) if word.startswith("/etc/scaletrain/") else word
                  for word in container["args"]]
        given = {entry["name"]: entry["value"] for entry in container.get("env", [])}
        process = subprocess.Popen(
            ["nsenter", f"--net=/run/netns/{self.pods[number]}", "unshare", "--mount", "sh", "-c",
             'mount --bind "$0" /etc/hosts && exec "$@"', str(hosts), *words],
            cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env={**os.environ, "KUBERNETES_SERVICE_HOST": "10.0.0.1", **given, **variables})
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def run_pods(self, recipe, container, variables):
        pods = [self.start_pod(number, container, recipe, variables(number)) for number in range(2)]
        return [(*pod.communicate(timeout=TIMEOUT_S), pod.returncode) for pod in pods]

    def chain(self, run):
        return [(r["step"], r["loss"], r["order_digest"]) for r in records(self.folder / run, "train")]

    def check_kind(self, kind, container_of, variables):
        if self.alone is None:
            self.run_scaletrain("launch", "--nproc", 2, self.recipe("alone", steps=8, threads=1))
            type(self).alone = self.chain("alone")
            self.assertEqual(8, len(self.alone))
        recipe = self.recipe("apart", steps=8, threads=1)
        container = container_of(self.job(recipe, kind)["spec"])
        for out, error, status in self.run_pods(recipe, container, variables):
            self.assertEqual(0, status, f"{out}\n{error}")
        self.assertEqual(self.alone, self.chain("apart"))

    def test_an_indexed_job_trains_as_one_node(self):
        self.check_kind("indexed-job", lambda spec: spec["template"]["spec"]["containers"][0],
                        lambda number: {"JOB_COMPLETION_INDEX": str(number)})

    def test_a_jobset_trains_as_one_node(self):
        def container_of(spec):
            job = spec["replicatedJobs"][0]["template"]["spec"]
            return job["template"]["spec"]["containers"][0]

        self.check_kind("jobset", container_of, lambda number: {"JOB_COMPLETION_INDEX": str(number)})

    def test_a_pytorchjob_trains_as_one_node(self):
        """With the variables of the operator from 1.7 on, and with those of older ones."""
        old = {"MASTER_ADDR": "run-master-0", "MASTER_PORT": "23456", "WORLD_SIZE": "2"}
        new = {"PET_NNODES": "2", "PET_MASTER_ADDR": "run-master-0", "PET_MASTER_PORT": "23456",
               "PET_NPROC_PER_NODE": "1"}
        def container_of(spec):
            return spec["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]

        for variables in (
                lambda number: {**old, "RANK": str(number)},
                lambda number: {**old, **new, "RANK": str(number), "PET_NODE_RANK": str(number)}):
            with self.subTest(variables=variables(0)):
                self.check_kind("pytorchjob", container_of, variables)
                shutil.rmtree(self.folder / "apart")

    def test_the_operator_is_told_what_to_try_again(self):
        recipe = self.recipe("apart", steps=8)
        container = self.job(recipe, "pytorchjob")["spec"]["pytorchReplicaSpecs"]["Master"][
            "template"]["spec"]["containers"][0]
        alone = {"PET_NNODES": "1", "SCALETRAIN_FAULT": "throw@3,0"}
        pod = self.start_pod(0, container, recipe, alone)
        self.assertEqual(1, (pod.communicate(timeout=TIMEOUT_S), pod.returncode)[1])
        environment = {entry["name"]: entry["value"] for entry in container["env"]}
        lost = ["launch", "--set", "output=/dev/null/run", recipe]
        self.run_scaletrain(*lost, expect=74)
        self.run_scaletrain(*lost, expect=175, env=environment)


if __name__ == "__main__":
    unittest.main()
