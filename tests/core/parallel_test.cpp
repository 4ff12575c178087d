#include "lib/core/parallel.h"

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

using scaletrain::core::for_each_index;

TEST_CASE("every turn runs once, with any number of threads") {
  for (const int threads : {1, 2, 7, 100}) {
    std::vector<std::atomic<int>> runs(50);
    for_each_index(50, threads, [&](std::int64_t i) { ++runs[static_cast<std::size_t>(i)]; });
    for (const auto& count : runs) CHECK(count == 1);
  }
  for_each_index(0, 4, [](std::int64_t) { FAIL("there is no turn"); });
}

TEST_CASE("the failure of the lowest turn is thrown, and no further turn is begun") {
  for (const int threads : {1, 4}) {
    std::atomic<int> runs = 0;
    CHECK_THROWS_WITH(for_each_index(1000, threads,
                                     [&](std::int64_t i) {
                                       ++runs;
                                       if (i >= 3) throw std::runtime_error(std::to_string(i));
                                     }),
                      "3");
    CHECK(runs <= 3 + threads);
  }
}
