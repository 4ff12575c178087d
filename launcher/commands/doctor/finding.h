// One line of `scaletrain doctor`.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::launcher {

struct Finding {
  enum class State { kOk, kWarning, kFailed };
  State state = State::kOk;
  std::string name;      // "disk", "open files"
  std::string found;     // observed state
  std::string remedy{};  // suggested remedy; "": no problem
};

using Findings = std::vector<Finding>;

Finding well(std::string name, std::string found);
Finding warning(std::string name, std::string found, std::string remedy);
Finding failure(std::string name, std::string found, std::string remedy);

bool any_failed(const Findings& findings);

// One line for each, "ok       disk         ...", with the remedy indented below.
std::string to_text(const Findings& findings);
// {"ok": false, "findings": [{"name", "state": "ok"|"warning"|"failed", "found", "remedy"}, ...]}
std::string to_json(const Findings& findings);

}  // namespace scaletrain::launcher
