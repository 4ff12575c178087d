#include "launcher/agents/journal.h"

#include <nlohmann/json.hpp>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/text/json_text.h"

namespace scaletrain::launcher {

Journal::Journal(const std::filesystem::path& file, std::string agent) : agent_(std::move(agent)) {
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
  try {
    fd_ = core::open_to_append(file, "");
  } catch (const core::StorageError& error) {
    core::warn("no journal: {}", error.what());
  }
}

void Journal::write(const char* event, const nlohmann::json& more) {
  if (!fd_) return;
  nlohmann::ordered_json record{{"time", core::unix_time()}, {"agent", agent_}, {"event", event}};
  for (const auto& [key, value] : more.items()) record[key] = value;
  const std::string line = core::json_text(record) + "\n";
  [[maybe_unused]] const ssize_t written = ::write(fd_.get(), line.data(), line.size());
}

void Journal::write(const char* event) { write(event, nlohmann::json::object()); }

}  // namespace scaletrain::launcher
