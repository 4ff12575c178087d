#include "launcher/jobs/lost_replicas.h"

#include <fmt/format.h>

#include <utility>

#include "lib/core/log.h"

namespace scaletrain::launcher {

void LostReplicas::add(const WorkerEnd& end, const std::vector<WorkerPlan>& plans,
                       const std::optional<Hang>& hang, std::int64_t step) {
  GroupEnd group{.workers = {end}, .hang = hang};
  group.workers.front().was_outlived = false;
  Failure failure = *first_failure(group, plans);
  if (failure.step < 0 && step > 0) failure.step = step;
  core::log("{}", render_lost(failure));
  lost_.push_back(std::move(failure));
}

std::string LostReplicas::text() const {
  std::string text;
  for (const Failure& failure : lost_) text += (text.empty() ? "" : ", ") + short_text(failure);
  return text;
}

}  // namespace scaletrain::launcher
