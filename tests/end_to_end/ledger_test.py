"""The time ledger: rows sum to the wall time over all attempts, and a planted delay appears in its own row."""

import json
import math
import statistics
import unittest

from end_to_end import support

STEPS = 8
PER_DEVICE = 16
STEP_ROWS = ("data_wait", "host_to_device", "forward", "backward", "exposed_communication", "optimizer")
# Milliseconds for each place in one run, each of another size.
DELAYS = {"slow-batch": 150, "slow-copy": 80, "slow-forward": 100, "slow-backward": 120, "slow-optimizer": 140,
          "slow-evaluation": 25, "slow-checkpoint": 300}


def faults(delays):
    return {"SCALETRAIN_FAULT": ";".join(f"{place}={ms}" for place, ms in delays.items())}


class LedgerTestCase(support.RunTestCase):
    def train(self, name, delays=None, ranks=1, expect=0, kill=None, restarts=0, **changes):
        """Launches a run with delays {"slow-batch@1": milliseconds}; returns its folder."""
        keys = {"steps": STEPS, "checkpoint": {"every": {"steps": 4}}, "validate": {"every": {"steps": 4}},
                "batch": {"per_device": PER_DEVICE}, **changes}
        env = faults(delays or {})
        if kill:
            env["SCALETRAIN_FAULT"] = f"{kill};{env['SCALETRAIN_FAULT']}"
        self.run_scaletrain("launch", "--nproc", ranks, "--max-restarts", restarts, self.recipe(name, **keys),
                            env=env, expect=expect)
        return self.folder / name

    def times(self, run):
        """The ledger as `explain run` prints it, with {row: seconds} as "seconds"."""
        story = json.loads(self.run_scaletrain("explain", "run", "--json", run).stdout)
        times = story["times"]
        times["seconds"] = {row["row"]: row["seconds"] for row in times["rows"]}
        times["remedies"] = {row["row"]: row["remedy"] for row in times["rows"] if "remedy" in row}
        return times

    def lines(self, run, file, event):
        records = [json.loads(line) for line in (run / file).read_text().splitlines()]
        return [record for record in records if record["event"] == event]

    def check_sum(self, run):
        times = self.times(run)
        seconds, wall = times["seconds"], times["wall_s"]
        # Launcher and worker take the time of a start apart: some milliseconds on a busy machine.
        self.assertAlmostEqual(wall, sum(seconds.values()), delta=0.005 * wall + 0.03, msg=str(seconds))
        self.assertGreaterEqual(min(seconds.values()), -1e-9)  # of a difference of sums
        most = 0.05 if wall < 20 else 0.02
        self.assertLessEqual(seconds["other"], most * wall, str(seconds))
        self.assertAlmostEqual(sum(seconds[row] for row in STEP_ROWS) / wall, times["goodput"])
        for line in self.lines(run, "metrics.jsonl", "ledger"):
            self.assertGreaterEqual(min(line["seconds"].values()), 0, str(line))
        return times

    def assert_within(self, expected, found, part, what):
        self.assertLessEqual(abs(found - expected), part * expected, f"{what}: {expected} planted, {found} booked")


class LedgerTest(LedgerTestCase):
    def test_rows_sum_to_the_wall_time_of_each_layout(self):
        for name, ranks, keys in (("one", 1, {}), ("two", 2, {}), ("shard", 2, {"parallel": {"shard": 2}}),
                                  ("accumulate", 2, {"batch": {"per_device": 8, "accumulate": 2}})):
            with self.subTest(name):
                run = self.train(name, ranks=ranks, steps=40, **keys)
                times = self.check_sum(run)
                first = self.lines(run, "journal.jsonl", "attempt_started")[0]["time"]
                last = self.lines(run, "metrics.jsonl", "ledger")[-1]["time"]
                self.assertAlmostEqual(last - first, times["wall_s"], delta=0.005 * times["wall_s"] + 0.03)
                for line in self.lines(run, "metrics.jsonl", "ledger")[:-1]:
                    self.assertEqual(ranks > 1, "mean" in line)

    def test_delays_of_all_places_appear_in_their_own_rows_and_their_remedies_name_them(self):
        base = self.times(self.train("base"))
        run = self.train("planted", {f"{place}@1": ms for place, ms in DELAYS.items()})
        times = self.check_sum(run)
        batches = sum(math.ceil(record["count"] / PER_DEVICE) for record in self.lines(run, "metrics.jsonl", "eval"))
        saves = len(self.lines(run, "metrics.jsonl", "checkpoint"))
        visits = {"slow-evaluation": batches, "slow-checkpoint": saves}
        for place, row in (("slow-batch", "data_wait"), ("slow-copy", "host_to_device"),
                           ("slow-forward", "forward"), ("slow-backward", "backward"),
                           ("slow-optimizer", "optimizer"), ("slow-evaluation", "evaluation"),
                           ("slow-checkpoint", "checkpoint_stall")):
            planted = visits.get(place, STEPS) * DELAYS[place] / 1000
            # On a busy machine the row's own work may take twice as long as in the other run.
            own = base["seconds"][row]
            self.assert_within(planted + own, times["seconds"][row], 0.1 + own / (planted + own), row)
        # The optimizer's remedy begins at a fifth of the time; four rows at most have one.
        for row in ("evaluation", "checkpoint_stall", "data_wait"):
            self.assertTrue(row in times["remedies"] or len(times["remedies"]) == 4, str(times["remedies"]))
        text = self.run_scaletrain("explain", "run", run).stdout
        self.assertRegex(text, r"(?m)^  time         .* in 1 attempt, goodput ")
        self.assertRegex(text, r"(?m)^  slow         evaluated \d+ % of the time: validate less often")

    def test_a_slow_start_is_start_up_and_of_a_later_attempt_a_restart(self):
        run = self.train("killed", {"slow-start@1": 700, "slow-forward@1": 250}, kill="kill@8", restarts=1,
                         expect=137, steps=12, checkpoint={"every": {"steps": 4}, "async": False})
        self.run_scaletrain("resume", run, env=faults({"slow-start@1": 700}))
        times = self.check_sum(run)
        self.assertEqual(3, times["attempts"])
        self.assertGreaterEqual(times["seconds"]["start_up"], 0.7)
        self.assertGreaterEqual(times["seconds"]["restart"], 2 * 0.7)  # of attempts 1 and 2
        # Attempts 0 and 1 did steps 5 to 7 in vain, and waited from then on for the launcher's look.
        lost = 2 * 3 * 0.25
        for failed in self.lines(run, "journal.jsonl", "attempt_failed"):
            last = [line["time"] for line in self.lines(run, "metrics.jsonl", "ledger")
                    if line["attempt"] == failed["attempt"]][-1]
            lost += failed["time"] - last
        self.assert_within(lost, times["seconds"]["lost_work"], 0.1, "lost_work")
        self.assertIn("save more often", times["remedies"]["lost_work"])
        self.assertIn("restart", times["remedies"])

    def test_what_ifs_are_the_times_of_the_runs_without_the_delays(self):
        base = {"slow-forward@1": 300}
        step_s = {}
        for name, delays in (("base", base), ("data", {**base, "slow-batch@1": 120}),
                             ("rank", {**base, "slow-forward@1,1": 120}),
                             ("collective", {**base, "slow-collective@1,1": 30})):
            times = self.check_sum(self.train(name, delays, ranks=2, checkpoint=None, validate=None))
            steps = sum(times["seconds"][row] for row in STEP_ROWS)
            step_s[name] = {"as it is": steps, **{what: steps - times["wall_s"] + seconds
                                                  for what, seconds in times["what_if"].items()}}
            step_s[name]["exposed"] = times["seconds"]["exposed_communication"]
            step_s[name]["remedies"] = times["remedies"]
        without = step_s["base"]["as it is"]
        self.assertGreater(step_s["rank"]["as it is"], 1.2 * without)
        self.assert_within(without, step_s["data"]["without_data_wait_s"], 0.05, "without data wait")
        self.assert_within(without, step_s["rank"]["without_slowest_rank_s"], 0.05, "without the slowest rank")
        self.assert_within(step_s["base"]["without_communication_s"],
                           step_s["collective"]["without_communication_s"], 0.05, "without communication")
        # What steps take longer with slow collectives is exposed communication.
        longer = step_s["collective"]["as it is"] - without
        self.assert_within(longer, step_s["collective"]["exposed"] - step_s["base"]["exposed"], 0.1, "collectives")
        self.assertIn("waited in collectives", step_s["collective"]["remedies"]["exposed_communication"])


@unittest.skipUnless(support.LONG, "SCALETRAIN_LONG=1 plants 28 delays in runs of their own")
class LedgerSweep(LedgerTestCase):
    STEP_MS = 200
    SHARES = (0.02, 0.05, 0.2, 1.0)  # of a step, or of the phase
    REPEATS = 3

    def rows(self, name, delays, **options):
        """Median rows of several runs, and how far they are apart."""
        runs = [self.times(self.train(f"{name}-{number}", delays, **options))["seconds"]
                for number in range(self.REPEATS)]
        return {row: (statistics.median(run[row] for run in runs),
                      max(run[row] for run in runs) - min(run[row] for run in runs)) for row in runs[0]}

    def test_each_delay_is_booked_on_its_own_row(self):
        base_delays = {"slow-forward@1": self.STEP_MS}
        base = self.rows("base", base_delays, ranks=2, steps=20)
        for place, row in (("slow-batch@1", "data_wait"), ("slow-collective@1", "exposed_communication"),
                           ("slow-checkpoint@1", "checkpoint_stall"), ("slow-optimizer@1", "optimizer"),
                           ("slow-evaluation@1", "evaluation"), ("slow-start@1", "start_up")):
            for share in self.SHARES:
                phase_ms = 1000 * base["start_up"][0] if row == "start_up" else self.STEP_MS
                ms = max(1, round(share * phase_ms))
                with self.subTest(place, share=share):
                    found = self.rows(f"{row}-{ms}", {**base_delays, place: ms}, ranks=2, steps=20)
                    run = self.folder / f"{row}-{ms}-0"
                    visits = {"start_up": 1, "checkpoint_stall": len(self.lines(run, "metrics.jsonl", "checkpoint")),
                              "evaluation": sum(math.ceil(record["count"] / 2 / PER_DEVICE) for record in
                                                self.lines(run, "metrics.jsonl", "eval"))}.get(row, 20)
                    longer = found[row][0] - base[row][0]
                    if row == "exposed_communication":  # several collectives a step
                        planted = sum(found[one][0] - base[one][0] for one in STEP_ROWS)
                        self.assertGreaterEqual(longer, visits * ms / 1000 - base[row][1])
                    else:
                        planted = visits * ms / 1000
                    self.assertLessEqual(abs(longer - planted), 0.1 * planted + base[row][1], f"{planted} {longer}")

    def test_a_delay_of_each_restart_is_booked_on_it(self):
        def restarted(name, ms):
            run = self.train(name, {"slow-start@1": ms}, kill="kill@8", expect=137)
            self.run_scaletrain("resume", run, env=faults({"slow-start@1": ms}))
            return self.times(run)["seconds"]["restart"]

        base = [restarted(f"base-{number}", 0) for number in range(self.REPEATS)]
        phase, spread = statistics.median(base), max(base) - min(base)
        for share in self.SHARES:
            planted = share * phase
            found = statistics.median(restarted(f"restart-{share}-{number}", round(1000 * planted))
                                      for number in range(self.REPEATS))
            self.assertLessEqual(abs(found - phase - planted), 0.1 * planted + spread, f"{share} of {phase}")


if __name__ == "__main__":
    unittest.main()
