"""Samples of devices while a run goes on: the tests' driver library and a small /sys in place of the machine's."""

import json
import unittest

from launcher.launch_recipe_test import RecipeTestCase
from launcher.launch_support import BIN

RANGE = 262143328850  # of the RAPL counter, in microjoules
GPU_MJ = 4_320_000_000  # 1.2 kWh
CPU_UJ = 180_000_000_000  # 0.05 kWh

# Looks at the status while the run goes on, lets time pass for the counters, and ends.
BODY = """
until [ -s "$TEST_FOLDER/run/logs/attempt_0/devices_0.jsonl" ]; do sleep 0.01; done
"$SCALETRAIN" status "$TEST_FOLDER/run" >"$TEST_FOLDER/status"
mv "$TEST_FOLDER/values.later" "$FAKE_NVML_VALUES"
mv "$TEST_FOLDER/energy.later" "$SCALETRAIN_SYSTEM_ROOT/sys/class/powercap/intel-rapl:0/energy_uj"
"""


class Devices(RecipeTestCase):
    def setUp(self):
        super().setUp()
        self.root = self.folder / "root"
        self.root.mkdir()

    def plant(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def launch_with(self, body, env=None, **recipe):
        self.script(body)
        return self.run_launcher("launch", "--worker", self.worker, self.recipe(**recipe),
                                 env={"SCALETRAIN_SYSTEM_ROOT": str(self.root), **(env or {})})

    def explained(self):
        return json.loads(self.run_launcher("explain", "run", "--json", self.run_folder).stdout)["devices"]["energy"]

    def test_energy_cost_and_carbon_are_those_of_the_planted_counters(self):
        library = BIN.parent / "fake_nvml"
        if not library.exists():
            self.skipTest("the library of the tests is not built")
        before = 200_000_000_000
        self.plant("sys/class/powercap/intel-rapl:0/name", "package-0\n")
        self.plant("sys/class/powercap/intel-rapl:0/max_energy_range_uj", f"{RANGE}\n")
        self.plant("sys/class/powercap/intel-rapl:0/energy_uj", f"{before}\n")
        (self.folder / "energy.later").write_text(f"{before + CPU_UJ - RANGE}\n")  # it wraps around
        values = "0 utilization 97\n0 power_mw 650000\n0 throttle 4\n0 energy_mj {}\n"
        (self.folder / "values").write_text(values.format(1000))
        (self.folder / "values.later").write_text(values.format(1000 + GPU_MJ))
        done = self.launch_with(
            BODY, {"LD_LIBRARY_PATH": str(library), "FAKE_GPUS": "1", "SCALETRAIN": str(BIN / "scaletrain"),
                   "FAKE_NVML_VALUES": str(self.folder / "values")},
            cost={"kwh_price": 0.4, "region": "FR"})
        rows = ("  energy       1.25 kWh: GPUs 1.2, CPUs 0.05\n"
                "  cost         0.50: electricity 0.50\n"
                "  carbon       55 g CO2e\n")
        self.assertIn(rows, done.stderr)
        self.assertIn(rows, (self.run_folder / "console.log").read_text())
        self.assertIn("gpu 0       97 %  0.0/1.1 GB  650 W  throttled: power cap",
                      (self.folder / "status").read_text())

        energy = self.explained()
        for name, value in (("kwh", 1.25), ("gpu_kwh", 1.2), ("cpu_kwh", 0.05), ("cost", 0.5), ("carbon_g", 55)):
            self.assertAlmostEqual(value, energy[name], 9, name)
        self.assertIsNone(energy["memory_kwh"])
        self.assertGreater(energy["device_hours"], 0)

        page = self.folder / "report.html"
        self.run_launcher("report", self.run_folder, "-o", page)
        text = page.read_text()
        start = text.index(">", text.index('id="data"')) + 1
        (run,) = json.loads(text[start:text.index("</script>", start)])["runs"]
        shown = {one["name"]: one["text"] for one in run["results"]}
        self.assertEqual(("1.25 kWh", "0.50", "55 g CO2e"), tuple(shown[name] for name in ("kwh", "cost", "carbon_g")))
        self.assertEqual(energy, run["devices"]["energy"])

    def test_energy_that_is_not_measured_is_not_invented(self):
        done = self.launch_with("", output=str(self.folder / "without_rates"))
        self.assertNotIn("energy", done.stderr)
        done = self.launch_with("", cost={"price": 3600, "kwh_price": 1, "g_per_kwh": 100})
        self.assertIn("  energy       not available: no energy of the CPUs (RAPL is absent)\n  cost ", done.stderr)
        self.assertNotIn("carbon", done.stderr)
        energy = self.explained()
        self.assertEqual((None, None, None), (energy["kwh"], energy["electricity_cost"], energy["carbon_g"]))
        self.assertAlmostEqual(3600 * energy["device_hours"], energy["cost"], 9)


if __name__ == "__main__":
    unittest.main()
