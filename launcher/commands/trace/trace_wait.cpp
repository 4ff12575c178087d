#include "launcher/commands/trace/trace_wait.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "lib/observe/trace/read_trace.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

// Ranks that write a file of this trace.
std::size_t ranks_in(const fs::path& file) {
  const nlohmann::json header = observe::read_trace(file, [](nlohmann::json&) {});
  const auto info = header.find("distributedInfo");
  if (info == header.end() || !info->is_object()) return 1;
  return info->value("world_size", std::size_t{1});
}

// The files of each step that were written since, by rank.
std::map<std::int64_t, std::map<int, fs::path>> new_traces(const fs::path& run,
                                                           const TracesBefore& before) {
  std::map<std::int64_t, std::map<int, fs::path>> files;
  for (const auto& [name, time] : traces_of(run)) {
    const auto old = before.find(name);
    if (old != before.end() && old->second == time) continue;
    const observe::TraceName parts = observe::parse_trace_name(name);
    files[parts.step][parts.rank] = run / "profile" / name;
  }
  return files;
}

}  // namespace

TracesBefore traces_of(const fs::path& run) {
  TracesBefore traces;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(run / "profile", error)) {
    const std::string name = entry.path().filename().string();
    if (observe::parse_trace_name(name).step < 0) continue;
    const fs::file_time_type time = entry.last_write_time(error);
    if (!error) traces[name] = time;
  }
  return traces;
}

std::vector<fs::path> await_trace(const fs::path& run, const TracesBefore& before,
                                  const std::function<void()>& pause) {
  std::optional<std::size_t> ranks;
  for (;;) {
    const auto files = new_traces(run, before);
    if (!files.empty()) {
      const std::map<int, fs::path>& first = files.begin()->second;
      if (!ranks) ranks = ranks_in(first.begin()->second);
      if (first.size() >= *ranks) {
        std::vector<fs::path> result;
        for (const auto& [rank, path] : first) result.push_back(path);
        return result;
      }
    }
    pause();
  }
}

}  // namespace scaletrain::launcher
