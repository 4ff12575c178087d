#include "launcher/jobs/checks/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string_view>

#include "lib/core/disk/disk.h"
#include "lib/core/disk/lease.h"
#include "lib/core/disk/read_faults.h"
#include "lib/core/error.h"
#include "lib/core/text/text.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/recipe/catalog/task.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxJsonBytes = 1 << 20;
constexpr std::string_view kAttempt = "attempt_";

// Returns the highest N of the entries PREFIXN; -1 if there is none.
int highest_number(const fs::path& folder, std::string_view prefix) {
  int highest = -1;
  for (const std::string& name : core::names_in(folder)) {
    if (!name.starts_with(prefix)) continue;
    highest = std::max(highest, core::parse_number<int>(name.substr(prefix.size())).value_or(-1));
  }
  return highest;
}

}  // namespace

bool holds_run(const fs::path& output) {
  return core::type_at(output / "finished.json") != fs::file_type::not_found ||
         !format::list_checkpoints(output / "checkpoints").empty();
}

std::optional<std::string> finished_run(const fs::path& output) {
  const fs::path file = output / "finished.json";
  if (!fs::exists(file)) return std::nullopt;
  const nlohmann::json json = nlohmann::json::parse(
      core::read_file(file, kMaxJsonBytes, core::ExitCode::kData), nullptr, false);
  if (!json.is_object()) {
    throw core::CheckpointError(file.string(), "is damaged",
                                "remove it to let the run continue from its newest checkpoint");
  }
  std::string text = fmt::format("step {}, epoch {}", json.value("step", std::int64_t{0}),
                                 json.value("epoch", std::int64_t{0}));
  for (const recipe::TaskRow& task : recipe::tasks()) {
    const recipe::Measure& measure = task.measures.front();
    const auto tested = json.find("test_" + measure.name);
    if (tested == json.end() || !tested->is_number()) continue;
    text += fmt::format(", test {} {}", measure.label, measure.text(tested->get<double>()));
    const std::int64_t step = json.value("test_step", std::int64_t{-1});
    if (step >= 0 && step != json.value("step", step)) text += fmt::format(" at step {}", step);
    break;  // a run has one task
  }
  return text;
}

bool is_running(const fs::path& output) {
  const std::optional<core::LeaseView> lease = core::view_lease(output / "lease.json");
  constexpr double kStaleS = std::chrono::duration<double>(core::Lease::kStaleAfter).count();
  return lease && lease->alive.value_or(lease->age_s < kStaleS);
}

int next_attempt(const fs::path& output, int first_rank) {
  const int highest = highest_number(output / "logs", kAttempt);
  if (highest < 0) return 0;
  const fs::path newest = output / "logs" / fmt::format("{}{}", kAttempt, highest);
  return fs::exists(newest / std::to_string(first_rank)) ? highest + 1 : highest;
}

}  // namespace scaletrain::launcher
