"""The page of scaletrain report in a headless Chromium: it draws, zooms, smooths and fits without an error."""

import json
import math
import tempfile
import unittest

from browser import CHROMIUM, Browser
from launcher.runs_support import RunsTestCase, evaluation, train

DRAWN = "[...document.querySelectorAll('.plot canvas')].map((one) => one.toDataURL()).join()"

# Pixels of a colour in the first chart.
PIXELS = """[...document.querySelectorAll('.plot')[0].querySelectorAll('canvas')].map((one) => {
  const bytes = one.getContext('2d').getImageData(0, 0, one.width, one.height).data;
  let count = 0;
  for (let i = 0; i < bytes.length; i += 4)
    count += bytes[i + 3] > 100 && %s.every((value, j) => Math.abs(value - bytes[i + j]) < 8);
  return count;
}).reduce((sum, one) => sum + one)"""


def records(steps, slower=1.0):
    noise = (0.2 * (step * 7919 % 13) / 13 for step in range(steps))
    made = [train(step, loss=0.1 + 2 * math.exp(-step / (slower * steps / 4)) + next(noise), epoch=step // 10)
            for step in range(1, steps + 1)]
    return made + [evaluation(step, 1 - 0.9 * math.exp(-step / steps)) for step in range(10, steps + 1, 10)]


@unittest.skipUnless(CHROMIUM, "no Chromium is installed")
class ReportInBrowser(RunsTestCase):
    @classmethod
    def setUpClass(cls):
        profile = tempfile.TemporaryDirectory(prefix="scaletrain-test-", ignore_cleanup_errors=True)
        cls.addClassCleanup(profile.cleanup)
        cls.browser = Browser(profile.name)
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        super().setUp()
        self.browser.errors.clear()
        self.browser.requests.clear()
        self.browser.show(1280)

    def open_runs(self, *runs):
        page = self.folder / "page.html"
        self.run_launcher("report", *runs, "-o", page)
        self.browser.open(page.as_uri())
        return page

    def open_two(self):
        return self.open_runs(self.write_run("a", records(60)),
                              self.write_run("b", records(60, 2.0), optimizer={"name": "adamw", "lr": 0.002}))

    def drawn(self):
        self.browser.frame()
        return self.browser.evaluate(DRAWN)

    def range(self):
        return self.browser.evaluate("report.charts[0].graph.xAxisRange()")

    def assert_range(self, low, high):
        for expected, found in zip((low, high), self.range()):
            self.assertAlmostEqual(expected, found, places=6)

    def set(self, element, value, event):
        self.browser.evaluate(f"(() => {{ const one = document.getElementById('{element}'); one.value = '{value}'; "
                              f"one.dispatchEvent(new Event('{event}')); }})()")

    def test_it_draws_without_an_error_and_asks_for_nothing_else(self):
        page = self.open_two()
        self.assertEqual(7, self.browser.evaluate("report.charts.length"))
        self.browser.frame()
        self.assertEqual([], self.browser.errors)
        self.assertEqual([page.as_uri()], [url for url in self.browser.requests if not url.startswith("data:")])
        for color in ([59, 130, 246], [232, 113, 10]):  # last: reading pixels makes Chromium write a hint
            self.assertGreater(self.browser.evaluate(PIXELS % color), 200, color)

    def test_the_browser_reports_what_a_page_does_wrong(self):
        page = self.folder / "wrong.html"
        page.write_text("<img src='missing.png'><script>console.error('first'); throw new Error('second');</script>")
        self.browser.open(page.as_uri())
        self.browser.frame()
        text = "\n".join(self.browser.errors)
        self.assertIn("first", text)
        self.assertIn("second", text)
        self.assertEqual([page.as_uri(), page.with_name("missing.png").as_uri()], self.browser.requests)

    def test_the_keyboard_zooms_and_moves_all_charts(self):
        self.open_two()
        low, high = self.range()
        width = high - low
        whole = self.drawn()
        self.browser.evaluate("document.querySelector('.plot').focus()")
        self.browser.press("+")
        self.assert_range(low + width / 4, high - width / 4)
        self.assertEqual(self.range(), self.browser.evaluate("report.charts[4].graph.xAxisRange()"))
        zoomed = self.drawn()
        self.assertNotEqual(whole, zoomed)
        self.browser.press("ArrowRight")  # a fifth of the half
        self.assert_range(low + 0.35 * width, high - 0.15 * width)
        self.browser.press("ArrowRight")
        self.browser.press("ArrowRight")  # stops at the end of the data
        self.assert_range(low + 0.5 * width, high)
        self.browser.press("ArrowLeft")
        self.assert_range(low + 0.4 * width, high - 0.1 * width)
        self.browser.press("0")
        self.assert_range(low, high)
        self.assertEqual(whole, self.drawn())
        self.browser.press("+")
        self.browser.press("-")
        self.browser.press("-")  # not beyond the whole range
        self.assert_range(low, high)
        self.assertEqual([], self.browser.errors)

    def test_the_mouse_zooms_and_the_button_shows_the_whole_range(self):
        self.open_two()
        low, high = self.range()
        box = json.loads(self.browser.evaluate("JSON.stringify(document.querySelector('.plot').getBoundingClientRect())"))
        y = box["y"] + box["height"] / 2
        from_x, to_x = (box["x"] + share * box["width"] for share in (0.4, 0.7))
        self.browser.mouse("mouseMoved", from_x, y)
        self.browser.mouse("mousePressed", from_x, y, button="left", buttons=1, clickCount=1)
        self.browser.mouse("mouseMoved", (from_x + to_x) / 2, y, button="left", buttons=1)
        self.browser.mouse("mouseMoved", to_x, y, button="left", buttons=1)
        self.browser.mouse("mouseReleased", to_x, y, button="left", clickCount=1)
        self.browser.frame()
        zoomed = self.range()
        self.assertLess(low, zoomed[0])
        self.assertLess(zoomed[1], high)
        self.browser.evaluate("document.getElementById('reset').click()")
        self.assert_range(low, high)
        self.assertEqual([], self.browser.errors)

    def test_smoothing_log_scale_axis_and_runs_change_what_is_drawn(self):
        self.open_two()
        plain = self.drawn()
        self.set("smoothing", "0.9", "input")
        self.assertNotEqual(plain, self.drawn())
        self.assertEqual("0.9", self.browser.evaluate("document.getElementById('smoothing-value').textContent"))
        self.set("smoothing", "0", "input")
        self.assertEqual(plain, self.drawn())
        for box in ("#log", "#shown input"):
            self.browser.evaluate(f"document.querySelector('{box}').click()")
            self.assertNotEqual(plain, self.drawn(), box)
            self.browser.evaluate(f"document.querySelector('{box}').click()")
            self.assertEqual(plain, self.drawn(), box)
        for axis in ("epoch", "samples", "hours"):
            self.set("axis", axis, "change")
            self.assertNotEqual(plain, self.drawn(), axis)
        self.set("axis", "step", "change")
        self.assertEqual(plain, self.drawn())
        self.assertEqual([], self.browser.errors)

    def test_light_and_dark(self):
        self.open_two()
        background = "getComputedStyle(document.body).backgroundColor"
        self.assertEqual("rgb(255, 255, 255)", self.browser.evaluate(background))
        light = self.drawn()
        self.browser.show(1280, dark=True)
        self.assertEqual("rgb(20, 23, 26)", self.browser.evaluate(background))
        self.assertNotEqual(light, self.drawn())  # the grid too
        self.assertEqual("rgb(230, 233, 236)",
                         self.browser.evaluate("getComputedStyle(document.querySelector('.dygraph-axis-label')).color"))
        self.assertEqual([], self.browser.errors)

    def test_no_width_needs_sideways_scrolling_of_the_page(self):
        long_name = "a-run-with-" + "a-long-name-" * 8
        self.open_runs(self.write_run(long_name, records(60), description="x" * 300), self.write_run("b", records(60)))
        for width in (1280, 400):
            self.browser.show(width)
            self.browser.frame()
            self.assertLessEqual(self.browser.evaluate("document.documentElement.scrollWidth"), width)
            self.assertEqual(0, self.browser.evaluate(
                "[...document.querySelectorAll('.plot')].filter((one) => one.getBoundingClientRect().right > innerWidth)"
                ".length"))
        self.assertEqual([], self.browser.errors)

    def test_a_run_of_10_000_logged_steps_is_drawn(self):
        self.open_runs(self.write_run("a", records(10000)))
        self.assertEqual(10000, self.browser.evaluate("report.data.runs[0].train.step.length"))
        self.assertEqual([], self.browser.errors)


if __name__ == "__main__":
    unittest.main()
