// Runs worker commands other than training: eval, predict, generate and bench.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace scaletrain::launcher {

struct RanksEnd {
  int status = 0;       // exit status
  int stop_signal = 0;  // signal that stopped the ranks; 0: none
};

// Runs `worker` with `words` on `nproc` ranks ("2", "gpu", ...), as `scaletrain launch -- PROGRAM`
// does. Each rank has its share of the cores. Throws core::Error.
RanksEnd run_worker_ranks(const std::string& worker, const std::string& nproc,
                          const std::vector<std::string>& words);

// Runs the ranks likewise and returns the exit status; a single rank replaces this process. With
// several, `check` throws the error that each of them would, so that it is reported once.
int run_worker(const std::string& worker, const std::string& nproc,
               const std::vector<std::string>& words, const std::function<void()>& check);

}  // namespace scaletrain::launcher
