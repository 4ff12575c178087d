// journal.jsonl: the events of a run with their causes, over all attempts, one JSON object a line.
//
// The launcher of node 0 and rank 0 both append. Every event and its fields:
// docs/reference/journal.md.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lib/core/housekeeping.h"

namespace scaletrain::observe {

// Returns the line of an event, without its newline: {"event", "attempt", FIELDS..., "time"};
// `fields` is an object, `time` in Unix seconds. Null fields are left out.
std::string journal_line(const std::string& event, int attempt,
                         const nlohmann::ordered_json& fields, double time);

// Appends to RUN/journal.jsonl, whose folder is made again if it was removed. Opens the file for
// each event, as events are rare; a line that cannot be written is a warning.
class RunJournal {
 public:
  explicit RunJournal(
      const std::filesystem::path& run,
      std::shared_ptr<core::Housekeeping> housekeeping = std::make_shared<core::Housekeeping>());

  void write(const std::string& event, int attempt, const nlohmann::ordered_json& fields);

 private:
  std::filesystem::path file_;
  std::shared_ptr<core::Housekeeping> housekeeping_;
};

}  // namespace scaletrain::observe
