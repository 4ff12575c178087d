#include "lib/train/rules/cpu_threads.h"

#include <ATen/Parallel.h>

#include "lib/core/thread_limit.h"

namespace scaletrain::train {

void start_cpu_threads(std::int64_t threads) {
  core::try_threads(static_cast<int>(threads > 0 ? threads : at::get_num_threads()) - 1);
  if (threads > 0) at::set_num_threads(static_cast<int>(threads));
  at::parallel_for(0, at::get_num_threads(), 1, [](std::int64_t, std::int64_t) {});
}

}  // namespace scaletrain::train
