#include "launcher/commands/watch/watch_screen.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace scaletrain::launcher {
namespace {

using Json = nlohmann::ordered_json;

Json status_of(const char* state) {
  return Json{
      {"name", "digits"}, {"state", state},     {"why", nullptr},  {"restart", 1},
      {"step", 84},       {"total_steps", 210}, {"left_s", 108.0}, {"ranks", Json::array()}};
}

RunCurves some_curves() {
  RunCurves curves;
  for (int step = 1; step <= 100; ++step) {
    curves.loss.push_back({static_cast<double>(step), 1.0 / step});
    curves.lr.push_back({static_cast<double>(step), 0.001});
    curves.throughput.push_back({static_cast<double>(step), 1144});
  }
  curves.validation = {{10, 0.5}, {100, 0.75}};
  curves.measure = "top1";
  curves.rows = {{"data_wait", 0.25}, {"forward", 0.0025}, {"backward", 0.75}};
  return curves;
}

bool has_line(const std::vector<std::string>& lines, const std::string& part) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

}  // namespace

TEST_CASE("the screen names state, curves, throughput and where a step's time goes") {
  const auto lines = watch_screen(status_of("running"), some_curves(), {"a line"}, {100, 30});
  CHECK(lines.at(0) == "digits   running   step 84/210   left 1m 48s   restarts 1");
  CHECK(lines.at(1).starts_with("loss  0.01 "));
  CHECK(lines.at(1).ends_with("val top-1  75.00 %"));
  CHECK(has_line(lines, "throughput   1144 samples/s  "));
  CHECK(has_line(lines, "time         backward 75 %  data wait 25 %"));
  CHECK(lines.back() == "a line");
}

TEST_CASE("the axis of a measure in percent has percent, and a language model has tokens/s") {
  RunCurves curves = some_curves();
  curves.counts_tokens = true;
  const auto lines = watch_screen(status_of("running"), curves, {}, {60, 30});
  CHECK(has_line(lines, "75.00 % |"));
  CHECK(has_line(lines, "50.00 % |"));
  CHECK(has_line(lines, "throughput   1144 tokens/s  "));
}

TEST_CASE("rows of the time that have no room are left out whole, and the step is named once") {
  RunCurves curves = some_curves();
  curves.rows = {{"exposed_communication", 1}, {"checkpoint_stall", 1}, {"host_to_device", 1}};
  Json status = status_of("finished");
  status["why"] = "step 84, epoch 10, test top-1 97.46 % at step 90";
  const auto lines = watch_screen(status, curves, {}, {60, 30});
  CHECK(lines.at(1) == "epoch 10, test top-1 97.46 % at step 90");
  CHECK(std::find(lines.begin(), lines.end(), "time         exposed communication 33 %") !=
        lines.end());
}

TEST_CASE("keys are named where there is room, and change the curve of the loss") {
  const WatchView keys{.has_keys = true};
  CHECK(watch_screen(status_of("running"), some_curves(), {}, {100, 30}, keys)
            .at(0)
            .ends_with("   q quit  s smooth  l log scale"));
  CHECK_FALSE(watch_screen(status_of("running"), some_curves(), {}, {60, 30}, keys)
                  .at(0)
                  .ends_with("scale"));
  const WatchView changed{.smooth = true, .log_loss = true};
  const auto lines = watch_screen(status_of("running"), some_curves(), {}, {60, 30}, changed);
  CHECK(lines.at(1) == "loss  0.01  smoothed  log scale");
  CHECK(has_line(lines, "    1 |"));  // the first loss; the last one is a mean of several
  CHECK_FALSE(has_line(lines, " 0.01 |"));
  const auto log =
      watch_screen(status_of("running"), some_curves(), {}, {60, 30}, {.log_loss = true});
  CHECK(has_line(log, "0.01 |"));
}

TEST_CASE("no line is wider and no screen is higher than the terminal") {
  for (const ScreenSize size : {ScreenSize{100, 30}, ScreenSize{60, 24}, ScreenSize{40, 5}}) {
    const auto lines =
        watch_screen(status_of("running"), some_curves(), {std::string(200, 'x')}, size);
    CHECK(static_cast<int>(lines.size()) <= size.height);
    for (const std::string& line : lines) CHECK(observe::text_columns(line) <= size.width);
  }
}

TEST_CASE("on a narrow screen the validation stands below the loss") {
  const auto lines = watch_screen(status_of("running"), some_curves(), {}, {60, 30});
  CHECK(lines.at(1) == "loss  0.01");
  CHECK(has_line(lines, "val top-1  75.00 %"));
}

TEST_CASE("a run without records says that there is no value yet") {
  Json status = status_of("running");
  status["step"] = nullptr;
  const auto lines = watch_screen(status, {}, {}, {60, 24});
  CHECK(has_line(lines, "loss  no value yet"));
  CHECK(has_line(lines, "val  no value yet"));
}

TEST_CASE("control characters of a name are shown as text") {
  Json status = status_of("failed");
  status["why"] = "a\x1b[31m";
  const auto lines = watch_screen(status, {}, {"\x1b[2J"}, {60, 24});
  for (const std::string& line : lines) CHECK(line.find('\x1b') == std::string::npos);
}

}  // namespace scaletrain::launcher
