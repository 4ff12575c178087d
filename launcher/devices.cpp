#include "launcher/devices.h"

#include <algorithm>

#include "launcher/gpus.h"
#include "launcher/torchrun/numa.h"
#include "lib/core/cores.h"

namespace scaletrain::launcher {

int count_cpus() { return core::paid_cores(std::max(1, static_cast<int>(allowed_cpus().size()))); }

int count_gpus() { return static_cast<int>(visible_gpus_here().size()); }

}  // namespace scaletrain::launcher
