#include "lib/observe/slow_causes.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace scaletrain::observe {
namespace {

using Texts = std::vector<std::string>;
using core::TimeRow;

// 100 s, of which `seconds` on `row` and the rest in forward.
RunTimes times_with(std::size_t row, double seconds) {
  RunTimes times{.wall_s = 100, .attempts = 1};
  times.seconds[static_cast<std::size_t>(TimeRow::kForward)] = 100 - seconds;
  times.seconds.at(row) = seconds;
  return times;
}

RunTimes times_with(TimeRow row, double seconds) {
  return times_with(static_cast<std::size_t>(row), seconds);
}

// Waited 62 s of 100 s for data.
RunTimes slow_data() { return times_with(TimeRow::kDataWait, 62); }

RunCosts costly_decoding() {
  return {.read_s = 0.001,
          .decode_s = 0.027,
          .augment_s = 0.002,
          .threads = 1,
          .cores = 8,
          .image_size = 224};
}

Texts texts_of(const RunTimes& times, const RunCosts& costs) {
  Texts texts;
  for (const SlowCause& cause : slow_causes(times, costs)) texts.push_back(cause.text);
  return texts;
}

TEST_CASE("a run that waits for decoding needs threads or smaller images") {
  // 1 / (1 - 0.62) = 2.6 threads; 1.15 x 224 = 257.6
  CHECK(texts_of(slow_data(), costly_decoding()) ==
        Texts{"waited for data 62 % of the time, decoding takes 27 ms a sample: raise data.threads "
              "from 1 to 3 or run `scaletrain data pack --resize 258` once"});
}

TEST_CASE("no more threads are suggested than a rank has cores") {
  RunCosts costs = costly_decoding();
  costs.cores = 2;
  CHECK(texts_of(slow_data(), costs).at(0).find("data.threads from 1 to 2 ") != std::string::npos);
  costs.cores = 1;
  CHECK(texts_of(slow_data(), costs).at(0).find("give each rank more CPU cores or ") !=
        std::string::npos);
  costs.threads = 0;  // not known
  CHECK(texts_of(slow_data(), costs).at(0).find(": raise data.threads or ") != std::string::npos);
  costs = costly_decoding();
  costs.threads_searched = true;
  CHECK(texts_of(slow_data(), costs).at(0).find(": give each rank more CPU cores or ") !=
        std::string::npos);
}

TEST_CASE("the slowest stage of the loader decides what helps") {
  RunCosts costs = costly_decoding();
  costs.augment_s = 0.05;
  CHECK(texts_of(slow_data(), costs) ==
        Texts{"waited for data 62 % of the time, augmentation takes 50 ms a sample: raise "
              "data.threads from 1 to 3 or use fewer transforms"});
  costs.read_s = 0.125;
  CHECK(texts_of(slow_data(), costs) ==
        Texts{"waited for data 62 % of the time, reading takes 125 ms a sample: copy the data to a "
              "local disk or raise data.threads, or set it to \"auto\""});
  CHECK(texts_of(slow_data(), {}) ==
        Texts{"waited for data 62 % of the time: raise data.threads or data.prefetch"});
}

TEST_CASE("a run that waits for checkpoints saves less often or asynchronously") {
  const RunTimes times = times_with(TimeRow::kCheckpoint, 10);
  CHECK(texts_of(times, {.saves_async = false}) ==
        Texts{"waited for checkpoints 10 % of the time: set checkpoint.async to true or save less "
              "often"});
  CHECK(texts_of(times, {}) == Texts{"waited for checkpoints 10 % of the time: save less often "
                                     "(checkpoint.every)"});
}

TEST_CASE("each avoidable row has a remedy from 2 % on, and the work of a step has none") {
  for (std::size_t row = 0; row < kRunRows; ++row) {
    const bool is_work = row == static_cast<std::size_t>(TimeRow::kForward) ||
                         row == static_cast<std::size_t>(TimeRow::kBackward) ||
                         row == static_cast<std::size_t>(TimeRow::kOther);
    CAPTURE(row_name(row));
    const std::vector<SlowCause> causes = slow_causes(times_with(row, 40), {});
    CHECK(causes.size() == (is_work ? 0 : 1));
    if (!causes.empty()) CHECK(causes[0].row == row);
    CHECK(slow_causes(times_with(row, 1.9), {}).empty());
  }
  CHECK(slow_causes(times_with(TimeRow::kOptimizer, 19), {}).empty());  // every step has an update
}

TEST_CASE("the largest row comes first, and four at most") {
  RunTimes times = times_with(TimeRow::kDataWait, 5);
  times.seconds[static_cast<std::size_t>(TimeRow::kEvaluation)] = 20;
  times.seconds[static_cast<std::size_t>(TimeRow::kCommunication)] = 10;
  times.seconds[kRestartRow] = 4;
  times.seconds[kLostRow] = 3;
  const std::vector<SlowCause> causes = slow_causes(times, {});
  REQUIRE(causes.size() == 4);
  CHECK(row_name(causes[0].row) == "evaluation");
  CHECK(row_name(causes[1].row) == "exposed_communication");
  CHECK(row_name(causes[3].row) == "restart");
}

TEST_CASE("a short run has no advice on the console") {
  CHECK(is_long_enough({.wall_s = 10}));
  CHECK_FALSE(is_long_enough({.wall_s = 9.9}));
}

}  // namespace
}  // namespace scaletrain::observe
