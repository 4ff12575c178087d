#include "lib/train/rules/cpu_threads.h"

#include <ATen/Parallel.h>
#include <doctest/doctest.h>

#include "tests/dist/ranks.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {

TEST_CASE("a rank has as many threads as its recipe says, else LibTorch's number") {
  CHECK(testing::said_apart([] {
          start_cpu_threads(1);
          const int asked = at::get_num_threads();
          start_cpu_threads(0);
          return std::to_string(asked) + " " + std::to_string(at::get_num_threads());
        }) == "1 1");
}

}  // namespace scaletrain::train
