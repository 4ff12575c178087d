// Work beside training whose failure ends no run: links, old checkpoints, statistics, logs.
//
// Only what durability needs ends a run. Any other failure is a warning, once for each cause, and
// is counted for the summary; the work is tried again at the next occasion.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace scaletrain::core {

class Error;

// Any thread may call it.
class Housekeeping {
 public:
  // Calls `work`, and once more if it throws a core::Error: an error may come once. If it fails
  // again, warns "PLACE: FOUND; CONSEQUENCE" and returns false.
  bool attempt(std::string_view consequence, const std::function<void()>& work);

  // Counts a failure that has happened.
  void failed(const Error& error, std::string_view consequence);
  void failed(std::string_view place, std::string_view found, std::string_view consequence);

  // Warns, without counting a failure: another way was found.
  void note(std::string_view place, std::string_view found, std::string_view consequence);

  std::int64_t failures() const;

 private:
  mutable std::mutex mutex_;
  std::set<std::string> causes_;
  std::int64_t failures_ = 0;
};

}  // namespace scaletrain::core
