// The replicas that a job has lost and gone on without (lib/recipe/apart.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/workers/failure.h"
#include "launcher/workers/hang_watch.h"

namespace scaletrain::launcher {

// What a job ends with that finished with fewer replicas than it had: it is done, and not as asked.
inline constexpr int kFewerReplicas = 77;

class LostReplicas {
 public:
  // Reports the one whose rank has ended so, on standard error, once; `ranks`: all of the replica
  // with this `number`; `hang`: for which that rank was killed; `step`: where it was, 0 where that
  // is not known.
  void add(int number, const std::vector<int>& ranks, const WorkerEnd& end,
           const std::vector<WorkerPlan>& plans, const std::optional<Hang>& hang,
           std::int64_t step);
  void clear() { lost_.clear(); }

  bool empty() const { return lost_.empty(); }
  std::size_t count() const { return lost_.size(); }
  // "rank 2 (killed by SIGKILL, step 40), rank 3 (hung, step 61)".
  std::string text() const;

 private:
  struct Lost {
    int number = 0;
    Failure failure;
  };
  std::vector<Lost> lost_;
};

}  // namespace scaletrain::launcher
