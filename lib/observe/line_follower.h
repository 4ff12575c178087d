// Follows a JSON Lines file that another process appends to, as metrics.jsonl of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <utility>

namespace scaletrain::observe {

class LineFollower {
 public:
  using Use = std::function<void(const nlohmann::ordered_json& record)>;

  // Follows `file` from byte `from` on.
  explicit LineFollower(std::filesystem::path file, std::uintmax_t from = 0)
      : file_(std::move(file)), offset_(from) {}

  // Calls `use` for each JSON object on the complete lines that were appended since the last call,
  // `most` of them at a time. Lines that do not parse are skipped. A file that became shorter is
  // read from its beginning again, after a call of `begin_again`.
  void read(const std::function<void()>& begin_again, const Use& use,
            std::size_t most = std::numeric_limits<std::size_t>::max());

  std::uintmax_t offset() const { return offset_; }  // bytes that were read

 private:
  std::filesystem::path file_;
  std::uintmax_t offset_;
};

}  // namespace scaletrain::observe
