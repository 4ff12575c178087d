"""Checkpoints in the memory of other nodes: hosts in network namespaces, each with a disk of its own
for the run's folder, and what a job goes on from where one is lost or its disk is empty."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import unittest

from end_to_end import support
from end_to_end.agents_support import RECOVERY_S, AgentsTestCase
from end_to_end.hosts import skip_unless_available

STEPS, EVERY = 40, 5


def lines_of(folder, event):
    try:
        text = (folder / "metrics.jsonl").read_text()
    except FileNotFoundError:
        return []
    lines = [json.loads(line) for line in text.splitlines() if line.endswith("}")]
    return [line for line in lines if line["event"] == event]


def memory_files(pid):
    """The files that a launcher holds for other nodes, the oldest first."""
    found = []
    for link in sorted(pathlib.Path(f"/proc/{pid}/fd").iterdir(), key=lambda link: int(link.name)):
        try:
            if os.readlink(link).startswith("/memfd:scaletrain-replica"):
                found.append(link)
        except FileNotFoundError:
            pass  # closed meanwhile
    return found


class ReplicateTestCase(AgentsTestCase, support.RunTestCase):
    NNODES = "3"
    ENV = {"SCALETRAIN_FAULT": "slows@1"}  # 50 ms a step

    def setUp(self):
        super().setUp()
        self.run_folder = self.folder / "apart"
        self.run_folder.mkdir()
        secret = self.folder / "secret"
        secret.write_text("0" * 64)
        secret.chmod(0o600)
        self.ENV = {**self.ENV, "SCALETRAIN_SECRET_FILE": str(secret)}
        self.shared_memory = self.folder / "shm"  # /dev/shm of all hosts
        self.shared_memory.mkdir()

    def tearDown(self):
        self.assert_nothing_left()
        self.assertEqual([], list(self.shared_memory.iterdir()))
        super().tearDown()

    def disk(self, host):
        return self.folder / f"disk{host}"

    def agent_on(self, host, recipe, disk=None, under=()):
        """An agent on a host whose run's folder is a disk of its own; `under`: what starts it."""
        disk = disk or self.disk(host)
        disk.mkdir(exist_ok=True)
        mount = (f"mount --bind {disk} {self.run_folder} && "
                 f'mount --bind {self.shared_memory} /dev/shm && exec "$@"')
        return self.popen(self.hosts.command(
            host, "unshare", "-m", "sh", "-c", mount, "sh", *under, support.SCALETRAIN, "launch",
            "--nnodes", self.NNODES, "--rdzv-endpoint", self.endpoints, "--rdzv-backend", "c10d",
            *self.FLAGS, "--resume", "auto", recipe))

    def recipes(self, **changes):
        """Of a run that is left alone, and of the one on hosts. They exchange by the same means."""
        changes = {"steps": STEPS, "threads": 1, "dist": {"cpu": "gloo"}, "data": {
            "train": {"shards": str(support.DIGITS / "train-{000000..000003}.tar")},
            "image_size": 16, "index_cache": str(self.folder / "index")}, **changes}
        every = {"every": {"steps": EVERY}, **changes.pop("checkpoint", {})}
        return (self.recipe("alone", checkpoint=every, **changes),
                self.recipe("apart", checkpoint={**every, "replicate": {"nodes": 1}}, **changes))

    def leader(self, hosts):
        """The host whose disk has the checkpoints of the run."""
        return next((host for host in hosts if lines_of(self.disk(host), "replica")), None)

    def check_as_alone(self, folder, first):
        """Bit for bit from step `first` on, which is where the run went on."""
        alone = {line["step"]: line for line in support.records(self.folder / "alone", "train")}
        for line in support.records(folder, "train"):
            if line["step"] < first:
                continue
            other = alone[line["step"]]
            for key in ("loss", "grad_norm", "lr", "order_digest"):
                self.assertEqual(other[key], line[key], (key, line["step"]))
        self.assertEqual(support.inspect(self.folder / "alone")["model_digest"],
                         support.inspect(folder)["model_digest"])


@skip_unless_available()
class LostHost(ReplicateTestCase):
    def test_the_state_of_a_lost_host_comes_from_its_partners_memory(self):
        alone, apart = self.recipes()
        self.run_launcher("launch", "--nproc", 3, alone)
        agents = {host: self.agent_on(host, apart) for host in range(3)}
        self.wait_for(lambda: self.leader(agents) is not None, "a checkpoint in memory")
        lost = self.leader(agents)
        agents.pop(lost).kill()
        step = max(line["step"] for line in lines_of(self.disk(lost), "replica"))
        shutil.rmtree(self.disk(lost))
        agents[3] = self.agent_on(3, apart)  # a new machine in its place
        outs = {host: agent.communicate(timeout=RECOVERY_S * 2)[0] for host, agent in agents.items()}
        for host, agent in agents.items():
            self.assertEqual(0, agent.returncode, outs[host])
        leader = self.leader(agents)
        text = outs[leader]
        self.assertRegex(text, rf"{self.run_folder}: it has no whole checkpoint, so "
                               r"step-\d+ was copied from the memory of node 10\.99\.78\.")
        self.assertRegex(text, r"checkpoints are copied to the memory of 2 nodes: at most [\d.]+ MB")
        first = lines_of(self.disk(leader), "train")[0]["step"]
        self.assertGreaterEqual(first, step + 1)
        self.assertEqual(1, first % EVERY)
        self.check_as_alone(self.disk(leader), first)


@skip_unless_available()
class EmptyDisk(ReplicateTestCase):
    HOSTS = 2
    NNODES = "2"
    FLAGS = [*ReplicateTestCase.FLAGS, "--max-restarts", "1"]

    @contextlib.contextmanager
    def killed_workers(self, disks):
        """All workers stand still, and are killed at the end, when two checkpoints are in memory."""
        self.wait_for(lambda: any(len(lines_of(disk, "replica")) > 1 for disk in disks),
                      "checkpoints in memory")
        workers = [pid for pid in support.pids_with(self.marker)
                   if b"scaletrain-worker\0train" in support.command_line(pid)]
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        yield
        for disk in disks:
            for path in disk.glob("checkpoints/*"):
                shutil.rmtree(path, ignore_errors=True)
        for pid in workers:
            os.kill(pid, signal.SIGKILL)

    def finish_all(self, agents):
        outs = [agent.communicate(timeout=RECOVERY_S * 2)[0] for agent in agents]
        for agent, out in zip(agents, outs):
            self.assertEqual(0, agent.returncode, out)
        return "".join(outs)

    def test_each_ranks_share_is_found_where_storage_is_empty(self):
        alone, apart = self.recipes(checkpoint={"writers": "all"})
        self.run_launcher("launch", "--nproc", 2, alone)
        disk = self.folder / "shared"
        agents = [self.agent_on(host, apart, disk) for host in range(2)]
        with self.killed_workers([disk]):
            pass
        out = self.finish_all(agents)
        self.assertRegex(out, r"so step-\d+ was copied from the memory of node \S+")
        first = min(line["step"] for line in lines_of(disk, "train") if line["attempt"] == 1)
        self.assertGreater(first, EVERY)
        self.check_as_alone(disk, first)

    def test_a_damaged_copy_is_named_and_another_is_taken(self):
        alone, apart = self.recipes()
        self.run_launcher("launch", "--nproc", 2, alone)
        agents = [self.agent_on(host, apart) for host in range(2)]
        disks = [self.disk(host) for host in range(2)]
        with self.killed_workers(disks):
            leader = self.leader(range(2))
            for link in memory_files(agents[leader].pid):
                with open(link, "r+b") as file:
                    first = file.read(1)
                    file.seek(0)
                    file.write(bytes([first[0] ^ 1]) if first else b"")
        out = self.finish_all(agents)
        self.assertRegex(out, r"warning: the memory of node \S+, step \d+, \S+: ")
        self.assertRegex(out, r"so step-\d+ was copied from the memory of node \S+\n")
        folder = self.disk(self.leader(range(2)))
        first = min(line["step"] for line in lines_of(folder, "train") if line["attempt"] > 0)
        self.check_as_alone(folder, first)


@skip_unless_available()
@unittest.skipUnless(shutil.which("strace"), "needs strace")
class KilledCopies(ReplicateTestCase):
    HOSTS = 2
    NNODES = "2"
    FLAGS = [*ReplicateTestCase.FLAGS, "--max-restarts", "1"]
    ENV = {}
    # By which a file goes from a rank's save to another node's memory, and back.
    CALLS = "memfd_create,sendto,recvfrom,accept4,write,fsync,rename"

    def test_killed_at_any_call_of_its_copies_a_job_goes_on_to_the_same_bits(self):
        """SIGKILL at the N-th of these calls of any thread on one of two hosts, each in turn, N
        sweeping until none is reached. A host whose launcher is killed loses its disk; where a rank
        is killed until the job gives up, it starts again."""
        alone, apart = self.recipes()
        self.run_launcher("launch", "--nproc", 2, alone)
        digest = support.inspect(self.folder / "alone")["model_digest"]
        killed = from_memory = 0
        for number in range(1, 4000) if support.LONG else (4, 60, 150, 400):
            host = killed % 2
            disks = [self.folder / f"disk-{number}-{i}" for i in range(2)]
            strace = ("strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={self.CALLS}",
                      "-e", f"inject={self.CALLS}:signal=KILL:when={number}")
            agents = [self.agent_on(i, apart, disks[i], under=strace if i == host else ())
                      for i in range(2)]
            said = agents[host].communicate(timeout=RECOVERY_S * 2)[0]
            if agents[host].returncode == 0:
                self.finish_all(agents[1 - host:2 - host])
                break
            killed += 1
            if agents[host].returncode < 0 and agents[1 - host].poll() is None:
                shutil.rmtree(disks[host])
                agents[host] = self.agent_on(host, apart, disks[host])
            outs = [agent.communicate(timeout=RECOVERY_S * 2)[0] for agent in agents]
            if any(agent.returncode for agent in agents):
                agents = [self.agent_on(i, apart, disks[i]) for i in range(2)]
                outs += self.finish_all(agents)
            from_memory += "from the memory of node" in "".join(outs)
            ends = [support.inspect(disk) for disk in disks if (disk / "checkpoints/latest").exists()]
            self.assertIn((STEPS, digest), [(end["step"], end["model_digest"]) for end in ends],
                          (number, said, outs))
            for disk in disks:
                shutil.rmtree(disk)
        print(f"killed at {killed} calls; {from_memory} went on from the other node's memory")
        self.assertGreater(killed, 2)

    def finish_all(self, agents):
        outs = [agent.communicate(timeout=RECOVERY_S * 2)[0] for agent in agents]
        for agent, out in zip(agents, outs):
            self.assertEqual(0, agent.returncode, out)
        return outs


class OneNode(support.RunTestCase):
    def test_a_job_of_one_node_is_refused(self):
        recipe = self.recipe(checkpoint={"replicate": {"nodes": 1}})
        error = self.run_scaletrain("launch", "--nproc", 2, recipe, expect=2).stderr
        self.assertIn("/checkpoint/replicate: the job has one node, so there is no memory of another node\n  "
                      "start it on several (--nnodes), or: --set checkpoint.replicate=null", error)
        recipe = self.recipe(checkpoint={"replicate": {"nodes": 2}})
        error = self.run_scaletrain("launch", "--nnodes", 2, "--node-rank", 0, "--master-addr",
                                    "127.0.0.1", recipe, expect=2).stderr
        self.assertIn("/checkpoint/replicate: asks for the memory of 2 other nodes, and the job has "
                      "1", error)


if __name__ == "__main__":
    unittest.main()
