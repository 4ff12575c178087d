// Log of an agent's observations and decisions, one JSON object per line, for later diagnosis.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lib/core/descriptor.h"

namespace scaletrain::launcher {

// Lines are {"time","agent","event", ...}; docs/internals/launcher.md lists the events. A journal
// that cannot be written is no reason to stop a job.
class Journal {
 public:
  Journal() = default;  // writes nowhere
  // Appends to `file`, whose folder is made.
  Journal(const std::filesystem::path& file, std::string agent);

  void write(const char* event, const nlohmann::json& more);
  void write(const char* event);

 private:
  core::Descriptor fd_;
  std::string agent_;
};

}  // namespace scaletrain::launcher
