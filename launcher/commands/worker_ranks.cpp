#include "launcher/commands/worker_ranks.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "launcher/commands/launch_command.h"
#include "launcher/flags/launch_options.h"
#include "launcher/jobs/foreign_job.h"
#include "launcher/place/placement.h"
#include "launcher/platform/become.h"
#include "lib/core/process/cores.h"

namespace scaletrain::launcher {

RanksEnd run_worker_ranks(const std::string& worker, const std::string& nproc,
                          const std::vector<std::string>& words) {
  LaunchOptions options;
  options.nproc = nproc;
  options.program = {worker};
  options.program.insert(options.program.end(), words.begin(), words.end());
  const Placement placement = resolve_placement(options);
  if (placement.nproc > 1) {
    // Its share of the cores, as a recipe's workers get; a person's own value holds.
    const std::int64_t share = std::max(core::usable_cores() / placement.nproc, 1);
    setenv("OMP_NUM_THREADS", std::to_string(share).c_str(), /*overwrite=*/0);
  }
  ForeignJob job(options, placement);
  const int status = run_launched(job.job(), placement, options);
  return {.status = status, .stop_signal = job.stop_signal()};
}

int run_worker(const std::string& worker, const std::string& nproc,
               const std::vector<std::string>& words, const std::function<void()>& check) {
  if (nproc == "1") become(worker, words);
  check();
  return run_worker_ranks(worker, nproc, words).status;
}

}  // namespace scaletrain::launcher
