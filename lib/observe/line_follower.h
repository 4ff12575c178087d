// Follows a JSON Lines file that another process appends to, as metrics.jsonl of a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>

namespace scaletrain::observe {

class LineFollower {
 public:
  using Use = std::function<void(const nlohmann::ordered_json& record)>;

  explicit LineFollower(std::filesystem::path file) : file_(std::move(file)) {}

  // Calls `use` for each JSON object on the complete lines that were appended since the last call.
  // Lines that do not parse are skipped. A file that became shorter is read from its beginning
  // again, after a call of `begin_again`.
  void read(const std::function<void()>& begin_again, const Use& use);

 private:
  std::filesystem::path file_;
  std::uintmax_t offset_ = 0;
};

}  // namespace scaletrain::observe
