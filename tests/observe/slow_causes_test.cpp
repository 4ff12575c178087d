#include "lib/observe/slow_causes.h"

#include <doctest/doctest.h>

namespace scaletrain::observe {
namespace {

using Texts = std::vector<std::string>;

// 62 s of 100 s waited for data.
RunCosts a_slow_run() {
  return {.seconds = 100,
          .data_s = 62,
          .read_s = 0.001,
          .decode_s = 0.027,
          .augment_s = 0.002,
          .threads = 1,
          .cores = 8,
          .image_size = 224};
}

TEST_CASE("a run that waits for decoding needs threads or smaller images") {
  // 1 / (1 - 0.62) = 2.6 threads; 1.15 x 224 = 257.6
  CHECK(slow_causes(a_slow_run()) ==
        Texts{"waited for data 62 % of the time, decoding takes 27 ms a sample: raise data.threads "
              "from 1 to 3 or run `scaletrain data pack --resize 258` once"});
}

TEST_CASE("no more threads are suggested than a rank has cores") {
  RunCosts costs = a_slow_run();
  costs.cores = 2;
  CHECK(slow_causes(costs).at(0).find("data.threads from 1 to 2 ") != std::string::npos);
  costs.cores = 1;
  CHECK(slow_causes(costs).at(0).find("give each rank more CPU cores or ") != std::string::npos);
}

TEST_CASE("the slowest stage of the loader decides what helps") {
  RunCosts costs = a_slow_run();
  costs.augment_s = 0.05;
  CHECK(slow_causes(costs) ==
        Texts{"waited for data 62 % of the time, augmentation takes 50 ms a sample: raise "
              "data.threads from 1 to 3 or use fewer transforms"});
  costs.read_s = 0.125;
  CHECK(slow_causes(costs) ==
        Texts{"waited for data 62 % of the time, reading takes 125 ms a sample: copy the data to a "
              "local disk or raise data.threads"});
}

TEST_CASE("a run that waits for checkpoints saves less often or asynchronously") {
  RunCosts costs{.seconds = 90, .data_s = 1, .saving_s = 10, .saves_async = false};
  CHECK(slow_causes(costs) == Texts{"waited for checkpoints 10 % of the time: set checkpoint.async "
                                    "to true or save less often"});
  costs.saves_async = true;
  CHECK(slow_causes(costs) == Texts{"waited for checkpoints 10 % of the time: save less often "
                                    "(checkpoint.every)"});
}

TEST_CASE("a fast run and a short run have no cause") {
  RunCosts costs = a_slow_run();
  costs.data_s = 9;
  CHECK(slow_causes(costs).empty());
  costs = a_slow_run();
  costs.seconds = 9.9;
  CHECK(slow_causes(costs).empty());
}

}  // namespace
}  // namespace scaletrain::observe
