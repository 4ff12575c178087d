#include "lib/train/simulate/machine_speed.h"

#include <doctest/doctest.h>

#include <cmath>

namespace scaletrain::train {

TEST_CASE("the speed of a machine is a finite number of operations and bytes") {
  const MachineSpeed speed = measure_machine(at::kFloat);
  CHECK(std::isfinite(speed.flops_per_s));
  CHECK(std::isfinite(speed.bytes_per_s));
  CHECK(speed.flops_per_s > 1e6);
  CHECK(speed.bytes_per_s > 1e6);
}

}  // namespace scaletrain::train
