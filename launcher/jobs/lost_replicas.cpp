#include "launcher/jobs/lost_replicas.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "lib/core/log.h"

namespace scaletrain::launcher {

void LostReplicas::add(int number, const std::vector<int>& ranks, const WorkerEnd& end,
                       const std::vector<WorkerPlan>& plans, const std::optional<Hang>& hang,
                       std::int64_t step) {
  if (std::ranges::find(lost_, number, &Lost::number) != lost_.end()) return;
  GroupEnd group{.workers = {end}, .hang = hang};
  group.workers.front().was_outlived = false;
  Failure failure = *first_failure(group, plans);
  if (failure.step < 0 && step > 0) failure.step = step;
  const std::string with_it = ranks.size() == 1 ? ""
                                                : fmt::format(", and replica {} with it (ranks {})",
                                                              number, fmt::join(ranks, ", "));
  core::log("{}", render_lost(failure, with_it));
  lost_.push_back({.number = number, .failure = std::move(failure)});
}

std::string LostReplicas::text() const {
  std::string text;
  for (const Lost& one : lost_) text += (text.empty() ? "" : ", ") + short_text(one.failure);
  return text;
}

}  // namespace scaletrain::launcher
