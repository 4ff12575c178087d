#include "launcher/jobs/launch_checks.h"

#include <fmt/format.h>

#include "launcher/platform/gpus.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/url.h"
#include "lib/recipe/sources.h"

namespace scaletrain::launcher {

void check_devices(const recipe::Recipe& recipe, const Placement& placement) {
  if (recipe.device == "cpu") return;
  const int gpus = count_gpus();
  if (placement.nproc <= gpus || (recipe.device == "auto" && gpus == 0)) return;
  throw core::UsageError(
      "--nproc", fmt::format("{} workers, and {} GPUs are visible", placement.nproc, gpus),
      "start one worker for each GPU at most, or train on CPUs: --set device=cpu");
}

void warn_of_patience(const recipe::Recipe& recipe, std::chrono::milliseconds hang_timeout) {
  const double limit_s = std::chrono::duration<double>(hang_timeout).count();
  if (limit_s == 0 || recipe.storage.give_up_after_s < limit_s) return;
  if (recipe::find_shard(recipe.data, core::is_url) == nullptr) return;
  core::warn(
      "/storage/give_up_after_s: {} s are not reached: --hang-timeout ends the run after {} s "
      "without a beat; make one shorter or the other longer",
      recipe.storage.give_up_after_s, limit_s);
}

}  // namespace scaletrain::launcher
