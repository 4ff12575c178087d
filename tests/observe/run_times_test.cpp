#include "lib/observe/run_times.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"

namespace scaletrain::observe {
namespace {

using Json = nlohmann::ordered_json;

// A line of the ledger up to `step` and Unix time `time`, with these rows in seconds.
Json ledger_line(int attempt, int step, double time, const Json& seconds) {
  return {{"event", "ledger"}, {"attempt", attempt}, {"step", step},
          {"rank", 0},         {"seconds", seconds}, {"time", time}};
}

Json attempt_start(int attempt, double time, int restart = 0, int step = -1) {
  Json line{{"event", "attempt_started"}, {"attempt", attempt}, {"restart", restart}};
  if (step >= 0) line["step"] = step;
  line["time"] = time;
  return line;
}

Json attempt_failure(int attempt, double time, int step) {
  return {{"event", "attempt_failed"}, {"attempt", attempt}, {"step", step}, {"time", time}};
}

// "start-up 2, forward 6 of 10; goodput 0.8" for the rows that are not 0.
std::string shown_rows(const RunTimes& times) {
  std::string text;
  for (std::size_t row = 0; row < kRunRows; ++row) {
    if (times.seconds[row] == 0) continue;
    text += fmt::format("{}{} {:g}", text.empty() ? "" : ", ", row_label(row), times.seconds[row]);
  }
  return fmt::format("{} of {:g}; goodput {:g}", text, times.wall_s, times.goodput());
}

void check_sum(const RunTimes& times) {
  CHECK(std::accumulate(times.seconds.begin(), times.seconds.end(), 0.0) ==
        doctest::Approx(times.wall_s));
}

}  // namespace

TEST_CASE(
    "one attempt: the time before its ledger is start-up, and the rows sum to its wall time") {
  // The launcher starts at 100, the worker's ledger at 101.
  const RunTimes times = run_times({ledger_line(0, 1, 104, {{"start_up", 2}, {"forward", 1}}),
                                    ledger_line(0, 9, 110, {{"forward", 5}, {"evaluation", 1}})},
                                   {attempt_start(0, 100)});
  CHECK(shown_rows(times) == "start-up 3, forward 6, evaluation 1 of 10; goodput 0.6");
  CHECK(times.attempts == 1);
  check_sum(times);
}

TEST_CASE("steps that the next attempt does again are lost work, the rest of the pause a restart") {
  // Attempt 0 fails in step 15 at 116; its lines reach step 10 at 111. Attempt 1 goes on after
  // step 5: of steps 2 to 10, which took 9 s, five are lost; steps 11 to 15 are lost whole.
  const RunTimes times = run_times({ledger_line(0, 1, 102, {{"start_up", 1}, {"forward", 1}}),
                                    ledger_line(0, 10, 111, {{"forward", 9}}),
                                    ledger_line(1, 20, 140, {{"start_up", 3}, {"forward", 15}})},
                                   {attempt_start(0, 100), attempt_failure(0, 116, 15),
                                    attempt_start(1, 120, /*restart=*/1, 5)});
  // Start: 102 - 2 - 100 = 0 s before the ledger, 1 s in it. Restart: 116 to 120, 2 s before
  // attempt 1's ledger and 3 s in it.
  CHECK(shown_rows(times) == "start-up 1, forward 20, restart 9, lost work 10 of 40; goodput 0.5");
  CHECK(times.attempts == 2);
  check_sum(times);
}

TEST_CASE("steps after the last line count as far as the next attempt goes on after them") {
  // Lines reach step 10, the checkpoint step 14, the failure step 18: half of the last 8 s counts.
  const RunTimes times =
      run_times({ledger_line(0, 10, 110, {{"forward", 6}, {"backward", 2}, {"optimizer", 2}}),
                 ledger_line(1, 20, 130, {{"start_up", 2}, {"forward", 6}})},
                {attempt_start(0, 100), attempt_failure(0, 118, 18),
                 attempt_start(1, 122, /*restart=*/1, 14)});
  CHECK(times.seconds[kLostRow] == doctest::Approx(4));
  CHECK(times.of(core::TimeRow::kForward) == doctest::Approx(6 + 6 + 4 * 0.6));
  CHECK(times.of(core::TimeRow::kBackward) == doctest::Approx(2 + 4 * 0.2));
  check_sum(times);
}

TEST_CASE("between a job and the one that resumes it later the clock stands still") {
  const RunTimes times =
      run_times({ledger_line(0, 10, 110, {{"start_up", 2}, {"forward", 8}}),
                 ledger_line(1, 20, 5010, {{"start_up", 3}, {"forward", 7}})},
                {attempt_start(0, 100), attempt_start(1, 5000, /*restart=*/0, 10)});
  CHECK(shown_rows(times) == "start-up 2, forward 15, restart 3 of 20; goodput 0.75");
  check_sum(times);
}

TEST_CASE("an attempt that failed before its first line is start-up, or restart of a later one") {
  const RunTimes times =
      run_times({ledger_line(2, 5, 130, {{"start_up", 4}, {"forward", 6}})},
                {attempt_start(0, 100), attempt_failure(0, 103, -1), attempt_start(1, 105, 1),
                 attempt_failure(1, 109, -1), attempt_start(2, 120, 2)});
  CHECK(shown_rows(times) == "start-up 3, forward 6, restart 21 of 30; goodput 0.2");
  check_sum(times);
}

TEST_CASE("what-if: without data wait, without exposed communication, without the slowest rank") {
  Json line =
      ledger_line(0, 10, 110, {{"data_wait", 2}, {"forward", 5}, {"exposed_communication", 3}});
  line["straggler_s"] = 0.5;
  const RunTimes times = run_times({line}, {attempt_start(0, 100)});
  CHECK(times.without_data_wait_s() == 8);
  CHECK(times.without_communication_s() == 7);
  CHECK(times.without_slowest_rank_s() == 9.5);
}

TEST_CASE("a run without a ledger has no times; files are read without torn lines") {
  CHECK(run_times({}, {attempt_start(0, 100)}).wall_s == 0);
  const test::TemporaryFolder folder;
  CHECK(read_run_times(folder.path).wall_s == 0);
  std::ofstream(folder.path / "metrics.jsonl")
      << R"({"event":"train","step":1,"time":104})" << '\n'
      << ledger_line(0, 1, 104, {{"forward", 4}}).dump() << '\n'
      << R"({"event":"ledger","attempt":0,"st)";
  std::ofstream(folder.path / "journal.jsonl") << attempt_start(0, 99).dump() << '\n';
  CHECK(shown_rows(read_run_times(folder.path)) == "start-up 1, forward 4 of 5; goodput 0.8");
}

TEST_CASE("every row has a name for programs and one for people") {
  CHECK(row_name(0) == "start_up");
  CHECK(row_name(kRestartRow) == "restart");
  CHECK(row_name(kLostRow) == "lost_work");
  for (std::size_t row = 0; row < kRunRows; ++row) CHECK(!row_label(row).empty());
}

}  // namespace scaletrain::observe
