// The runs of a sweep: all combinations of values of some keys.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace scaletrain::launcher {

// A recipe key with the values to try, each as text for --set.
struct Axis {
  std::string key;
  std::vector<std::string> values;
};

// Parses "optimizer.lr=[1e-4,3e-4]", a JSON list; numbers keep their digits, and a single value is
// a list of one. Throws core::UsageError for other text, an empty list or a repeated value.
Axis parse_axis(const std::string& text);

// Returns all combinations of keys and values; the last axis varies fastest. Throws
// core::UsageError for a repeated key and for more than 10,000 runs.
std::vector<std::vector<std::pair<std::string, std::string>>> combinations(
    const std::vector<Axis>& axes);

// Returns a folder name for a combination: "lr-1e-4_per_device-16", the last parts of the keys with
// letters, digits, '.', '_' and '-' only. A name that would be too long or ambiguous ends in a
// unique number.
std::string combination_name(const std::vector<std::pair<std::string, std::string>>& values);

}  // namespace scaletrain::launcher
