"""The rest of torchrun's contract, row by row, beside torchrun itself: variables in place of flags,
rare flags, filters, prefixes, events, error files and exits."""

import json
import os
import re
import subprocess
import sys
import unittest

from launcher.launch_support import LIMIT_S, SCALETRAIN, LaunchTestCase
from launcher.torchrun_support import BothSidesTestCase, hold_port


class Spellings(BothSidesTestCase):
    def test_every_variable_in_place_of_its_flag(self):
        env = {"PET_NPROC_PER_NODE": "2", "PET_NNODES": "1:1", "PET_NODE_RANK": "0",
               "PET_MASTER_ADDR": "localhost", "PET_MASTER_PORT": "29712", "PET_STANDALONE": "0",
               "PET_RDZV_BACKEND": "static", "PET_RDZV_ENDPOINT": "", "PET_RDZV_ID": "job8",
               "PET_RDZV_CONF": "timeout=60", "PET_LOCAL_ADDR": "127.0.0.1",
               "PET_MAX_RESTARTS": "3", "PET_MONITOR_INTERVAL": "0.05", "PET_START_METHOD": "fork",
               "PET_EVENT_LOG_HANDLER": "null", "PET_ROLE": "r", "PET_LOG_DIR": "SIDE",
               "PET_REDIRECTS": "3", "PET_TEE": "0:1", "PET_LOCAL_RANKS_FILTER": "0",
               "PET_DUPLICATE_STDOUT_FILTERS": "of 0", "PET_SIGNALS_TO_HANDLE": "SIGTERM",
               "PET_VIRTUAL_LOCAL_RANK": "1", "PET_NO_PYTHON": "1", "PET_MODULE": "0",
               "PET_RUN_PATH": "0", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "3", "LOGLEVEL": "ERROR"}
        ours, theirs = self.both(env=env, usual=(), program=(sys.executable, "dump.py", "x"))
        self.assertEqual(self.logs("theirs"), self.logs("ours"))
        self.assertEqual("[r0]:out of 0\n", ours.stdout)
        self.assertEqual(theirs.stdout, ours.stdout)
        variables = self.variables()
        self.assertEqual(("r", "3", "job8", "29712", "SIGTERM", "3"), tuple(
            variables[name] for name in (
                "ROLE_NAME", "TORCHELASTIC_MAX_RESTARTS", "TORCHELASTIC_RUN_ID", "MASTER_PORT",
                "TORCHELASTIC_SIGNALS_TO_HANDLE", "TORCH_NCCL_ASYNC_ERROR_HANDLING")))

    def test_every_flag_with_hyphens_and_with_underscores(self):
        flags = ["--nproc-per-node=2", "--node-rank=0", "--master-addr=localhost",
                 "--master-port=29713", "--rdzv-backend=static", "--rdzv-endpoint=",
                 "--rdzv-id=job9", "--rdzv-conf=timeout=60", "--local-addr=127.0.0.1",
                 "--max-restarts=1", "--monitor-interval=0.05", "--start-method=fork",
                 "--event-log-handler=null", "--log-dir=SIDE", "--local-ranks-filter=1",
                 "--duplicate-stdout-filters=a", "--duplicate-stderr-filters=b",
                 "--signals-to-handle=SIGTERM", "--virtual-local-rank", "--no-python"]
        for change in (lambda name: name, lambda name: name.replace("-", "_")):
            spelled = []
            for flag in flags:
                name, *value = flag.split("=", 1)
                spelled.append("=".join(["--" + change(name[2:]), *value]))
            self.both(*spelled, usual=(), program=(sys.executable, "dump.py", "x"))
            self.assertEqual("job9", self.variables()["TORCHELASTIC_RUN_ID"])


    def test_a_flag_given_twice_takes_its_last_value(self):
        self.both("--role", "first", "--role", "last", "--max-restarts=1", "--max_restarts", "2",
                  "--no-python", "--no-python", program=(sys.executable, "dump.py"))
        self.assertEqual(("last", "2"), (self.variables()["ROLE_NAME"],
                                         self.variables()["TORCHELASTIC_MAX_RESTARTS"]))

    def test_values_for_absent_local_ranks_are_allowed(self):
        ours, theirs = self.both("-t", "1:1,7:1", "-r", "0:2,9:3", "--local-ranks-filter", "1,9")
        self.assertEqual(self.logs("theirs"), self.logs("ours"))
        self.assertEqual("[default1]:out of 1\n", ours.stdout)
        self.assertEqual(theirs.stdout, ours.stdout)

    def test_a_signal_that_there_is_not_is_warned_about(self):
        ours, theirs = self.each("--signals-to-handle", "SIGTERM, SIGFOO")
        self.assertIn("SIGFOO", theirs.stderr)
        self.assertIn('warning: --signals-to-handle: "SIGFOO" is not a signal of this machine and '
                      "is ignored\n", ours.stderr)


class LocalAddress(BothSidesTestCase):
    """--local-addr: where the workers meet, with c10d and on a node alone."""

    def test_a_node_alone(self):
        self.each("--standalone", "--local-addr", "127.0.0.7")
        for side in self.SIDES:
            variables = json.loads((self.folder / f"{side}1").read_text())[1]
            self.assertEqual("127.0.0.7", variables["MASTER_ADDR"])

    def test_two_nodes_meet_at_the_address_of_the_first(self):
        owns = ("127.0.0.5", "127.0.0.6")
        for side in self.SIDES:
            endpoint = f"127.0.0.1:{hold_port(self)}"
            nodes = [self.begin(side, "--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint",
                                endpoint, "--local-addr", own, "--no-python", "sh", "-c",
                                f"echo $GROUP_RANK {own} $MASTER_ADDR") for own in owns]
            lines = [self.finish(node).stdout.split() for node in nodes]
            first, = [own for rank, own, _ in lines if rank == "0"]
            self.assertEqual([first, first], [address for *_, address in lines])


class Console(BothSidesTestCase):
    def test_filters_and_prefixes(self):
        ours, theirs = self.both(
            "-t", "3", "--duplicate-stdout-filters", "out of 1,no,,thing",
            "--duplicate-stderr-filters", "absent",
            env={"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "<${role_name}-${rank}/$local_rank$$>"})
        self.assertEqual(self.logs("theirs"), self.logs("ours"))
        self.assertEqual({"filtered_stdout.log": "<default-1/1$>out of 1\n",
                          "filtered_stderr.log": ""},
                         {name.split("/")[1]: text for name, text in self.logs("ours")[1].items()
                          if "filtered" in name})
        self.assertEqual(sorted(theirs.stdout.splitlines()), sorted(ours.stdout.splitlines()))

    def test_run_path_and_the_error_of_its_script(self):
        (self.folder / "script").write_text(
            "import sys\nprint(sys.argv, __name__)\nraise ValueError('boom')\n")
        # torchrun runs the script in a child of its own process, which it does not redirect in time.
        ours, theirs = self.each("--run-path", program=(f"{self.folder}/script", "x"), expect=1,
                                 usual=("--log-dir", "SIDE"))
        self.assertEqual(f"['{self.folder}/script', 'x'] __main__", ours.stdout.splitlines()[0])
        self.assertEqual(theirs.stdout.splitlines()[0], ours.stdout.splitlines()[0])
        messages = []
        for name in self.SIDES:
            run, = (self.folder / name).iterdir()
            messages += [json.loads(file.read_text())["message"]["message"]
                         for file in sorted(run.glob("attempt_0/*/error.json"))[:1]]
        self.assertEqual(["ValueError: boom"] * 2, messages)


class Events(BothSidesTestCase):
    """--event-log-handler console: the same events in the same order with the same fields."""

    # Differ in their nature: clocks, process numbers, a name that torchrun asks the DNS for.
    OWN_FIELDS = {"worker_id", "total_run_time", "duration_ms", "hostname", "raw_error", "run_id"}

    def events(self, text):
        found = []
        for line in text.splitlines():
            if not line.startswith('{"name": "torchelastic.worker') and \
                    not line.startswith('{"name":"torchelastic.worker'):
                continue
            event = json.loads(line)
            data = event["metadata"]
            inner = json.loads(data["metadata"])
            self.assertEqual([], [key for key in ("worker_pid", "exit_code") if key in inner
                                  and not isinstance(inner[key], list)])
            found.append((event["name"], event["source"], sorted(event), sorted(data),
                          {k: v for k, v in data.items() if k not in self.OWN_FIELDS | {"metadata"}},
                          {k: v for k, v in inner.items() if k != "worker_pid"}))
        return found

    def compare(self, *flags, **options):
        ours, theirs = self.each("-r", "3", "--event-log-handler", "console", *flags, **options)
        mine = self.events(ours.stderr)
        self.assertEqual(self.events(theirs.stderr), mine)
        return [(name.rsplit(".", 1)[1], source) for name, source, *_ in mine]

    def test_success(self):
        self.assertEqual([("RENDEZVOUS", "AGENT"), ("ASSIGN_WORKER_RANKS", "AGENT"),
                          ("START", "WORKER"), ("START", "WORKER"), ("SUCCEEDED", "WORKER"),
                          ("SUCCEEDED", "WORKER"), ("SUCCEEDED", "AGENT")], self.compare())

    def test_a_failure_after_a_restart(self):
        script = ("n=$TORCHELASTIC_RESTART_COUNT; echo attempt $n of $RANK; touch $TEST_OUT$n$RANK;"
                  "[ $RANK = 0 ] && exec sleep 1000; until [ -e $TEST_OUT${n}0 ]; do :; done; exit 7")
        states = self.compare("--max-restarts", "1", "--no-python", program=("sh", "-c", script),
                              expect=1)
        self.assertEqual([("FAILED", "WORKER"), ("FAILED", "WORKER"), ("SUCCEEDED", "AGENT")],
                         states[-3:])
        self.assertEqual(2, states.count(("RENDEZVOUS", "AGENT")))
        self.assertEqual(self.logs("theirs"), self.logs("ours"))
        self.assertEqual("attempt 1 of 0\n", self.logs("ours")[1]["attempt_1/0/stdout.log"])


class Ends(BothSidesTestCase):
    def test_failures_of_programs_exit_1(self):
        for end in ("exit 42", "kill -SEGV $$"):
            self.each("-r", "3", "--no-python", program=("sh", "-c", end), expect=1)

    def test_an_error_file_that_is_none_takes_nothing_down(self):
        """torchrun ends in an exception of its own here; ours names the failed rank."""
        script = "printf '{\"message\": {' >$TORCHELASTIC_ERROR_FILE; exit 3"
        ours, theirs = self.each("--no-python", program=("sh", "-c", script), expect=1)
        self.assertIn("JSONDecodeError", theirs.stderr)
        self.assertRegex(ours.stderr, r"rank [01] failed first: exit code 3")

    def test_the_earliest_time_in_an_error_file_is_the_cause(self):
        """Here as plain messages; the rank that was seen to end first is another."""
        script = ("printf '{\"message\": \"out of luck %s\", \"timestamp\": %s}' $RANK $((9 - $RANK)) "
                  ">$TORCHELASTIC_ERROR_FILE; touch $TEST_OUT$RANK;"
                  "until [ -e ${TEST_OUT}0 -a -e ${TEST_OUT}1 ]; do :; done; exit 3")
        ours, theirs = self.each("--no-python", program=("sh", "-c", script), expect=1)
        self.assertRegex(theirs.stderr, r"(?s)Root Cause .*rank +: 1 .*out of luck 1")
        self.assertRegex(ours.stderr, "rank 1 failed first: .*\n  cause: out of luck 1")


class Ours(LaunchTestCase):
    """What torchrun has for Python alone, or does not do on this machine."""

    def test_flags_without_effect_say_so_and_pythons_are_refused(self):
        done = self.run_launcher("launch", "--monitor-interval", "5", "--start-method", "fork",
                                 "--use-env", "--", "true")
        self.assertEqual(
            "--monitor-interval has no effect: a worker's end is seen at once\n"
            "--start-method has no effect: workers are programs, not Python functions\n",
            done.stderr)
        done = self.run_launcher("launch", "--logs-specs", "mine", "--", "true", expect=2)
        self.assertIn("--logs-specs: names a Python class", done.stderr)

    def test_our_flags_take_their_last_value_too(self):
        """A last value that is wrong shows which one was taken."""
        flags = ["--grace", "--hang-timeout", "--join-timeout", "--last-call", "--heartbeat-timeout",
                 "--restart-delay", "--restarts-per-hour"]
        for flag in flags:
            right = "5" if flag == "--restarts-per-hour" else "5s"
            done = self.run_launcher("launch", flag, right, flag, "last", "--", "true", expect=2)
            self.assertRegex(done.stderr, f'^{flag}: "last" is not ')
            self.run_launcher("launch", flag, "first", flag, right, "--", "true")
        done = self.run_launcher("launch", "--numa-binding", "node", "--numa-binding", "last", "--",
                                 "true", expect=2)
        self.assertIn('"last"', done.stderr)
        done = self.run_launcher("launch", "--signals-to-handle", "SIGKILL", "--", "true", expect=2)
        self.assertIn('--signals-to-handle: "SIGKILL" is not allowed', done.stderr)

    def test_unknown_flags_name_the_nearest(self):
        for wrong, right in (("--numa-bindng", "--numa-binding"), ("--rdzv-cnf", "--rdzv-conf"),
                             ("--event-log-hander", "--event-log-handler")):
            done = self.run_launcher("launch", wrong, "x", "--", "true", expect=2)
            self.assertIn(f'did you mean "{right}"?', done.stderr)

    def bound(self):
        return [set(json.loads((self.folder / f"cpus{rank}").read_text())) for rank in (0, 1)]

    def test_numa_binding_sets_the_cpus_of_each_worker(self):
        allowed = os.sched_getaffinity(0)
        script = ("import os; open('cpus' + os.environ['RANK'], 'w').write("
                  "str([*os.sched_getaffinity(0)]))")
        for mode in ("node", "socket", "core-complex"):
            self.run_launcher("launch", "--nproc", 2, "--numa-binding", mode, "--",
                              sys.executable, "-c", script)
            for cpus in self.bound():
                self.assertLessEqual(cpus, allowed)
        if len(allowed) < 2:
            self.skipTest("one CPU cannot be divided")
        done = self.run_launcher("launch", "--nproc", 2, "--numa-binding", "exclusive", "--",
                                 sys.executable, "-c", script, expect=None)
        if done.returncode == 2:  # two threads of one core
            self.assertRegex(done.stderr, "2 workers share the 1 cores")
            return
        one, other = self.bound()
        self.assertEqual(set(), one & other)
        self.assertEqual(allowed, one | other)

    def test_devices_may_be_uuids_and_mig_names(self):
        done = self.run_launcher(
            "launch", "--nproc", 2, "--virtual-local-rank", "--", "sh", "-c",
            "echo $RANK $LOCAL_RANK $CUDA_VISIBLE_DEVICES",
            env={"CUDA_VISIBLE_DEVICES": "GPU-5ee1, MIG-77f3"})
        self.assertEqual(["0 0 GPU-5ee1", "1 0 MIG-77f3"], sorted(done.stdout.splitlines()))


class AllFlags(unittest.TestCase):
    """torchrun's own parser names its flags and variables; a new one must be decided on."""

    def setUp(self):
        from torch.distributed.run import get_args_parser
        self.actions = get_args_parser()._actions
        table = json.loads(subprocess.run([SCALETRAIN, "--command-table"], capture_output=True,
                                          text=True, timeout=LIMIT_S, check=True).stdout)
        launch, = [command for command in table["commands"] if command["name"] == "launch"]
        self.variables = {flag["variable"] for flag in launch["flags"]}

    def test_every_flag_is_known_here(self):
        help_text = subprocess.run([SCALETRAIN, "launch", "--help"], capture_output=True, text=True,
                                   timeout=LIMIT_S, check=True).stdout
        ours = set(re.findall(r"-{1,2}[a-z][\w-]*", help_text))
        # The help lists a flag once, with dashes; torchrun's names with underscores are accepted too.
        theirs = {name.replace("_", "-") for action in self.actions for name in action.option_strings}
        self.assertLess(25, len(theirs))
        self.assertEqual(set(), theirs - ours - {"-h"})

    def test_every_variable_is_read_here(self):
        theirs = {f"PET_{action.dest.upper()}" for action in self.actions
                  if type(action).__name__ in ("env", "check_env")}
        self.assertLess(24, len(theirs))
        self.assertEqual(set(), theirs - self.variables)


if __name__ == "__main__":
    unittest.main()
