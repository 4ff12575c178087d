// Speed of this machine's CPU, for predictions.
#pragma once

#include <c10/core/ScalarType.h>

namespace scaletrain::train {

struct MachineSpeed {
  double flops_per_s = 0;  // speed of matrix products with the threads of this process
  double bytes_per_s = 0;  // read and written by copies in memory
};

// Takes about a tenth of a second.
MachineSpeed measure_machine(at::ScalarType type);

}  // namespace scaletrain::train
