"""Runs of several ranks where the network is not as it should be: names that mean nothing or another
machine, no loopback interface, ports that may not be used. Each in a network namespace of its own."""

import subprocess
import unittest

from end_to_end import support

HAS_NAMESPACES = subprocess.run(["unshare", "--net", "--mount", "--uts", "true"],
                                capture_output=True).returncode == 0
LOOPBACK = "ip link set lo up"


@unittest.skipUnless(HAS_NAMESPACES, "no namespaces for this user")
class BrokenNetwork(support.RunTestCase):
    def launch(self, setup, *arguments, prefix=(), expect=0):
        """`scaletrain launch ARGUMENTS` after the shell commands of `setup`; standard error."""
        done = subprocess.run(
            ["unshare", "--net", "--mount", "--uts", "sh", "-ec", setup + '; exec "$@"', "sh",
             *prefix, support.SCALETRAIN, "launch", *map(str, arguments)],
            cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        self.assertEqual(expect, done.returncode, done.stderr)
        return done.stderr

    def names(self, hosts):
        """Shell commands: these /etc/hosts, a name server that is not there, another host name."""
        (self.folder / "hosts").write_text(hosts)
        (self.folder / "resolv").write_text("nameserver 10.255.255.2\n")
        return (f"mount --bind {self.folder}/hosts /etc/hosts;"
                f"mount --bind {self.folder}/resolv /etc/resolv.conf; hostname no-such-host")

    def steps(self):
        return len(support.records(self.folder / "recipe", "train"))

    def test_a_host_name_that_means_another_machine_or_none(self):
        for hosts in ("127.0.0.1 localhost\n10.255.255.1 no-such-host\n", ""):
            self.launch(f"{LOOPBACK}; {self.names(hosts)}", "--nproc", 2, self.recipe(steps=3))
            self.assertEqual(3, self.steps())
            subprocess.run(["rm", "-r", self.folder / "recipe"], check=True)

    def test_no_loopback_interface(self):
        self.launch("true", self.recipe(steps=3))
        self.assertEqual(3, self.steps())
        for words in ([self.recipe("two")], ["--", "sleep", "1000"]):
            self.assertEqual(
                "127.0.0.1: cannot be reached: Network is unreachable (ENETUNREACH)\n"
                "  the workers need it for the rendezvous: enable the interface with ip link set lo up\n",
                self.launch("true", "--nproc", 2, *words, expect=2))

    def test_a_port_that_needs_rights(self):
        err = self.launch(LOOPBACK, "--nproc", 2, "--master-port", 80, self.recipe(steps=3), expect=2,
                          prefix=["setpriv", "--bounding-set", "-net_bind_service"])
        self.assertIn("--master-port 80: cannot listen on it: Permission denied (EACCES)\n", err)
        self.launch(LOOPBACK, "--nproc", 2, "--master-port", 0, self.recipe(steps=3))
        self.assertEqual(3, self.steps())


if __name__ == "__main__":
    unittest.main()
