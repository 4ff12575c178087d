#include "launcher/commands/slurm/array.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "launcher/flags/values.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"

namespace scaletrain::launcher {
namespace {

constexpr const char* kArray = "--array";
constexpr int kMostTasks = 10'000;
constexpr int kHighestTask = 4'000'000;  // Slurm's own limit

}  // namespace

std::vector<int> array_tasks(const std::string& text) {
  const auto refuse = [&](const char* found) {
    throw core::UsageError(kArray, fmt::format("\"{}\" {}", core::printable(text), found),
                           "it should look like 0-3 or 1,5-9:2%2, with 10,000 tasks at most");
  };
  const std::size_t percent = text.find('%');
  if (percent != std::string::npos) parse_count(kArray, text.substr(percent + 1), 1, kMostTasks);
  const std::string list = text.substr(0, percent);
  std::vector<int> result;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string entry = list.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t dash = entry.find('-');
    const std::size_t colon = entry.find(':');
    if (colon != std::string::npos && (dash == std::string::npos || colon < dash)) {
      refuse("has a step without a range");
    }
    const int first = parse_count(kArray, entry.substr(0, dash), 0, kHighestTask);
    const int last =
        dash == std::string::npos
            ? first
            : parse_count(kArray, entry.substr(dash + 1, colon - dash - 1), 0, kHighestTask);
    const int step = colon == std::string::npos
                         ? 1
                         : parse_count(kArray, entry.substr(colon + 1), 1, kHighestTask);
    if (last < first) refuse("has a range that runs backwards");
    if ((last - first) / step + static_cast<int>(result.size()) >= kMostTasks) {
      refuse("has too many tasks");
    }
    for (int task = first; task <= last; task += step) result.push_back(task);
  }
  if (std::set<int>(result.begin(), result.end()).size() != result.size()) {
    refuse("names a task twice");
  }
  return result;
}

std::string for_task(std::string text, int task) {
  constexpr std::string_view kMark = "%a";
  const std::string number = std::to_string(task);
  for (std::size_t at = text.find(kMark); at != std::string::npos; at = text.find(kMark, at)) {
    text.replace(at, kMark.size(), number);
    at += number.size();
  }
  return text;
}

}  // namespace scaletrain::launcher
