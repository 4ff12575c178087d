#include "launcher/platform/machine_load.h"

#include <doctest/doctest.h>

namespace scaletrain::launcher {

TEST_CASE("a machine is busy where the last minute and this moment say so") {
  CHECK(busy_threads("14.02 9.87 6.01 16/402 77\n") == 14.02);
  CHECK(busy_threads("14.02 9.87 6.01 1/402 77\n") == 0);    // all have just ended
  CHECK(busy_threads("0.10 0.50 0.90 16/402 77\n") == 0.1);  // by chance
  CHECK(busy_threads("") == 0);
  CHECK(busy_threads("no numbers") == 0);
  CHECK(busy_threads_now() >= 0);
}

}  // namespace scaletrain::launcher
