#include "launcher/commands/watch/watch_screen.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
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
  curves.seconds = 72;
  curves.peak_bytes = 1.14e9;
  return curves;
}

bool has_line(const std::vector<std::string>& lines, const std::string& part) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

}  // namespace

TEST_CASE("the screen names state, curves, rates, ranks and where the time goes, in two columns") {
  Json status = status_of("running");
  status["ranks"] = {{{"rank", 0}, {"step", 84}, {"phase", "forward"}, {"host", "a"}},
                     {{"rank", 1}, {"step", 83}, {"silent_s", 12.0}, {"host", "b"}}};
  const auto lines = watch_screen(status, some_curves(), {"a line"}, {100, 30});
  CHECK(lines.at(0) == "digits   running 1m 12s   step 84/210   left 1m 48s   restarts 1");
  CHECK(lines.at(1).starts_with("loss  0.01 "));
  CHECK(lines.at(1).ends_with("val top-1  75.00 %"));
  CHECK(has_line(lines, "throughput   1,144 samples/s  "));
  CHECK(has_line(lines, "peak memory  1.14 GB a rank"));
  CHECK(has_line(lines, "rank 0       step 84  forward  a"));
  CHECK(has_line(lines, "rank 1       step 83    b  no heartbeat for 12s"));
  CHECK(has_line(lines, " backward               75 %  ████████"));
  CHECK(has_line(lines, " data wait              25 %  ████"));
  CHECK_FALSE(has_line(lines, "forward                "));  // below 1 %
  CHECK(lines.back() == "a line");
  CHECK(lines.size() == 30);  // the charts have the rest
}

TEST_CASE("the axis of a measure in percent has percent, and a language model has tokens/s") {
  RunCurves curves = some_curves();
  curves.counts_tokens = true;
  const auto lines = watch_screen(status_of("running"), curves, {}, {60, 30});
  CHECK(has_line(lines, "75.00 % |"));
  CHECK(has_line(lines, "50.00 % |"));
  CHECK(has_line(lines, "throughput   1,144 tokens/s  "));
}

TEST_CASE("of many rows of the time the largest are shown, and the step is named once") {
  RunCurves curves = some_curves();
  curves.rows = {{"exposed_communication", 3}, {"checkpoint_stall", 1}, {"host_to_device", 5}};
  Json status = status_of("finished");
  status["why"] = "step 84, epoch 10, test top-1 97.46 % at step 90";
  const auto lines = watch_screen(status, curves, {}, {60, 12});
  CHECK(lines.at(2) == "test top-1 97.46 % at step 90");  // after the restarts
  status["why"] = "step 84, epoch 10";
  CHECK(watch_screen(status, curves, {}, {60, 12}).at(2) == "loss  0.01");
  CHECK(has_line(watch_screen(status, curves, {}, {60, 30}), "checkpoint stall"));
  const auto two = time_panel(curves, 60, 2);
  REQUIRE(two.size() == 2);
  CHECK(two[0].starts_with("host-to-device copy    56 %  ███"));
  CHECK(two[1].starts_with("exposed communication  33 %  ███"));
}

TEST_CASE("of many ranks the first ones are shown") {
  Json status = status_of("running");
  for (int rank = 0; rank < 8; ++rank) status["ranks"].push_back({{"rank", rank}});
  const auto lines = rank_panel(status, 4);
  REQUIRE(lines.size() == 5);
  CHECK(lines.back() == "             and 4 more");
  CHECK(rank_panel(status_of("finished"), 4).empty());
}

TEST_CASE("each panel can be hidden") {
  const auto shown = [](int hidden) {
    WatchView view;
    if (hidden >= 0) view.hidden.at(static_cast<std::size_t>(hidden)) = true;
    Json status = status_of("running");
    status["ranks"].push_back({{"rank", 0}});
    const auto lines = watch_screen(status, some_curves(), {}, {100, 30}, view);
    std::string parts;
    for (const char* part : {"loss", "throughput", "backward", "rank 0"}) {
      if (has_line(lines, part)) parts += part + std::string(" ");
    }
    return parts;
  };
  CHECK(shown(-1) == "loss throughput backward rank 0 ");
  CHECK(shown(0) == "throughput backward rank 0 ");
  CHECK(shown(1) == "loss backward rank 0 ");
  CHECK(shown(2) == "loss throughput rank 0 ");
  CHECK(shown(3) == "loss throughput backward ");
}

TEST_CASE("keys are named where there is room, and change the curve of the loss") {
  const WatchView keys{.has_keys = true};
  CHECK(watch_screen(status_of("running"), some_curves(), {}, {140, 30}, keys)
            .at(0)
            .ends_with("   q quit  s smooth  l log scale  1-5 panels"));
  CHECK(has_line(watch_screen(status_of("running"), some_curves(), {}, {40, 30}, keys), "q quit"));
  CHECK_FALSE(
      has_line(watch_screen(status_of("running"), some_curves(), {}, {40, 12}, keys), "q quit"));
  const WatchView changed{.smooth = true, .log_loss = true};
  const auto lines = watch_screen(status_of("running"), some_curves(), {}, {60, 30}, changed);
  CHECK(lines.at(2) == "loss  0.01  smoothed  log scale");
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
  CHECK(lines.at(0) == "digits   running 1m 12s   step 84/210   left 1m 48s");
  CHECK(lines.at(1) == "restarts 1");
  CHECK(lines.at(2) == "loss  0.01");
  CHECK(std::find(lines.begin(), lines.end(), "val top-1  75.00 %") != lines.end());
}

TEST_CASE("a run without validation has the loss over the full width") {
  RunCurves curves = some_curves();
  curves.validation.clear();
  const auto lines = watch_screen(status_of("running"), curves, {}, {100, 30});
  CHECK(lines.at(1) == "loss  0.01");
  CHECK_FALSE(has_line(lines, "val"));
  CHECK(has_line(lines, "      1                                           step "));
  CHECK(std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return line.ends_with(" 100") && observe::text_columns(line) == 100;
  }));
}

TEST_CASE("a run without records says that there is no value yet") {
  Json status = status_of("running");
  status["step"] = nullptr;
  const auto lines = watch_screen(status, {}, {}, {60, 24});
  CHECK(has_line(lines, "loss  no value yet"));
}

TEST_CASE("a loss that was never finite and a run of one step are shown") {
  RunCurves curves;
  curves.loss = {{1, std::nan("")}};
  CHECK(has_line(watch_screen(status_of("running"), curves, {}, {60, 24}), "loss  nan"));
  curves.loss = {{1, 0.5}};
  CHECK(has_line(watch_screen(status_of("running"), curves, {}, {60, 24}), "loss  0.5"));
}

TEST_CASE("control characters of a name are shown as text") {
  Json status = status_of("failed");
  status["why"] = "a\x1b[31m";
  const auto lines = watch_screen(status, {}, {"\x1b[2J"}, {60, 24});
  for (const std::string& line : lines) CHECK(line.find('\x1b') == std::string::npos);
}

}  // namespace scaletrain::launcher
