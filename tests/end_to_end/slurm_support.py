"""A real Slurm of two nodes on this machine, in a folder and a network of the test's own."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from end_to_end.support import RunTestCase

PROGRAMS = ["ip", "munged", "slurmctld", "slurmd", "srun"]
# Names that resolve without a name server: ranks meet at the first.
NODES = ["10.99.78.1", "10.99.78.2"]
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(10.99.78.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort=6817
AuthType=auth/munge
# A job that goes back into the queue waits until its old credentials are void: 120 s by default.
AuthInfo=socket={folder}/munge/socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/d-%n.pid
SlurmctldLogFile={folder}/ctld.log
SlurmdLogFile={folder}/d-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
# Jobs that wait are looked at once a second; by default one that comes back may wait for a minute.
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
KillWait=5
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
GresTypes=gpu
NodeName=10.99.78.[1-2] NodeHostname={host} NodeAddr=10.99.78.1 Port=[6818-6819] CPUs=2 RealMemory=500 Gres=gpu:2
PartitionName=all Nodes=ALL Default=YES State=UP PriorityTier=1 GraceTime=20
PartitionName=urgent Nodes=ALL State=UP PriorityTier=10 PreemptMode=OFF
"""
# Slurm counts device files; CUDA shows none of these.
GPUS = "Name=gpu File=/dev/null\nName=gpu File=/dev/zero\n"


def missing():
    """Why there can be no Slurm here; "" where there can."""
    if os.geteuid() != 0:
        return "Slurm's daemons need root"
    absent = [name for name in PROGRAMS if not shutil.which(name)]
    return f"not installed: {' '.join(absent)}" if absent else ""


def workers_in(folder):
    """The numbers of the workers that run in `folder`."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
            where = os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            continue
        if b"scaletrain-worker\0train\0" in command and where.startswith(str(folder)):
            found.append(int(pid))
    return found


class Cluster:
    def __init__(self, folder):
        self.network = f"st{os.getpid()}-slurm"
        self.ip("netns", "add", self.network)
        self.ip("-n", self.network, "link", "set", "lo", "up")
        for node in NODES:
            self.ip("-n", self.network, "address", "add", f"{node}/32", "dev", "lo")
        self.folder = pathlib.Path(folder)
        for name in ("state", "munge", *(f"spool-{node}" for node in NODES)):
            (self.folder / name).mkdir(mode=0o700)
        self.folder.chmod(0o755)
        self.configuration = self.folder / "slurm.conf"
        self.configuration.write_text(CONFIGURATION.format(
            folder=self.folder, host=socket.gethostname()))
        (self.folder / "gres.conf").write_text(GPUS)
        self.environment = {**os.environ, "SLURM_CONF": str(self.configuration)}
        munge = self.folder / "munge"
        (munge / "key").write_bytes(os.urandom(128))
        (munge / "key").chmod(0o600)
        self.daemons = []
        self.start("munged", "--foreground", "--force", f"--socket={munge}/socket",
                   f"--key-file={munge}/key", f"--pid-file={munge}/pid", f"--seed-file={munge}/seed")
        self.start("slurmctld", "-D", "-f", self.configuration)
        for node in NODES:
            self.start("slurmd", "-D", "-N", node, "-f", self.configuration)
        try:
            self.wait_until_idle()
        except AssertionError:
            self.stop()
            raise

    @staticmethod
    def ip(*arguments):
        subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)

    def command(self, *words):
        """What runs the words in the cluster's network; `ip netns exec` would hide cgroups."""
        return ["nsenter", f"--net=/run/netns/{self.network}", *map(str, words)]

    def run(self, *words):
        return subprocess.run(self.command(*words), env=self.environment, check=True,
                              capture_output=True, text=True).stdout

    def start(self, *command):
        log = open(self.folder / f"{command[0]}-{len(self.daemons)}.out", "wb")
        with log:
            self.daemons.append(subprocess.Popen(
                self.command(*command), env=self.environment, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True))

    def wait_until_idle(self):
        deadline = time.monotonic() + 60
        while True:
            done = subprocess.run(self.command("sinfo", "--noheader", "--format=%t %D"),
                                  env=self.environment, capture_output=True, text=True)
            if done.stdout.split() == ["idle", str(len(NODES))]:
                return
            if time.monotonic() > deadline:
                logs = "\n".join(path.read_text(errors="replace")[-2000:]
                                 for path in self.folder.glob("*.log"))
                raise AssertionError(f"Slurm's nodes are not idle: {done.stdout}{done.stderr}\n{logs}")
            time.sleep(0.1)

    def stop(self):
        for daemon in reversed(self.daemons):
            daemon.send_signal(signal.SIGTERM)
        for daemon in self.daemons:
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self.ip("netns", "delete", self.network)


@unittest.skipIf(missing(), missing())
class ClusterTestCase(RunTestCase):
    """One cluster for all tests of the class."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory(prefix="scaletrain-slurm-")
        cls.addClassCleanup(folder.cleanup)
        cls.cluster = Cluster(folder.name)
        cls.addClassCleanup(cls.cluster.stop)
