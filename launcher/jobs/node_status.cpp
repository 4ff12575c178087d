#include "launcher/jobs/node_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "launcher/place/placement.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/text/json_text.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxStatusBytes = 4 << 20;

}  // namespace

NodeStatus::NodeStatus(const fs::path& run, int node, int attempt, int restart)
    : file_(run / "status" / fmt::format("{}.json", node)),
      node_(node),
      attempt_(attempt),
      restart_(restart),
      next_(core::now()) {}

void NodeStatus::write(const std::vector<RankView>& views) {
  if (core::now() < next_) return;
  next_ = core::now() + kEvery;
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  std::int64_t total = 0;
  for (const RankView& view : views) {
    total = std::max(total, view.beat.total_steps);
    ranks.push_back({{"rank", view.rank},
                     {"pid", view.pid},
                     {"step", view.beat.step},
                     {"phase", core::to_text(view.beat.phase)},
                     {"silent_s", view.silent.count()}});
  }
  const nlohmann::ordered_json json{
      {"time", core::unix_time()}, {"host", host_name()},  {"node", node_}, {"attempt", attempt_},
      {"restart", restart_},       {"total_steps", total}, {"ranks", ranks}};
  // Not synced: it is news, and old in two seconds.
  std::error_code ignored;
  fs::create_directories(file_.parent_path(), ignored);
  const fs::path temporary = file_.string() + ".new";
  std::ofstream stream(temporary);
  stream << core::json_text(json) << '\n';
  stream.close();
  if (stream.good()) fs::rename(temporary, file_, ignored);
}

std::vector<nlohmann::json> read_node_statuses(const fs::path& run) {
  std::vector<nlohmann::json> result;
  std::error_code absent;
  for (const fs::directory_entry& entry : fs::directory_iterator(run / "status", absent)) {
    if (entry.path().extension() != ".json") continue;
    try {
      nlohmann::json json = nlohmann::json::parse(
          core::read_file(entry.path(), kMaxStatusBytes, core::ExitCode::kData), nullptr, false);
      if (json.is_object() && json.contains("node")) result.push_back(std::move(json));
    } catch (const core::Error&) {  // replaced or removed meanwhile
    }
  }
  std::sort(result.begin(), result.end(),
            [](const nlohmann::json& a, const nlohmann::json& b) { return a["node"] < b["node"]; });
  return result;
}

}  // namespace scaletrain::launcher
