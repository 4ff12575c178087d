#include "lib/train/cpu_threads.h"

#include <ATen/Parallel.h>

namespace scaletrain::train {

void start_cpu_threads(std::int64_t threads) {
  if (threads > 0) at::set_num_threads(static_cast<int>(threads));
  at::parallel_for(0, at::get_num_threads(), 1, [](std::int64_t, std::int64_t) {});
}

}  // namespace scaletrain::train
