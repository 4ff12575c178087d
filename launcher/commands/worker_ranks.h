// What a worker does besides training: eval, predict, generate and bench.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace scaletrain::launcher {

struct RanksEnd {
  int status = 0;       // to exit with
  int stop_signal = 0;  // that stopped the ranks; 0: none
};

// Runs `worker` with `words` on `nproc` ranks ("2", "gpu", ...), as `scaletrain launch -- PROGRAM`
// does. Each rank has its share of the cores. Throws core::Error.
RanksEnd run_worker_ranks(const std::string& worker, const std::string& nproc,
                          const std::vector<std::string>& words);

// The same, but returns the exit status, and one rank takes this process's place. For several,
// `check` throws what each of them would, so that it is reported once.
int run_worker(const std::string& worker, const std::string& nproc,
               const std::vector<std::string>& words, const std::function<void()>& check);

}  // namespace scaletrain::launcher
