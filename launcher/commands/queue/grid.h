// The runs of a sweep: every combination of the values of some keys.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace scaletrain::launcher {

// A key of the recipe with the values to try, each as text for --set.
struct Axis {
  std::string key;
  std::vector<std::string> values;
};

// "optimizer.lr=[1e-4,3e-4]": a JSON list; a number keeps the digits that it was written with, and
// a single value is a list of one. Throws core::UsageError for what is neither, for an empty list
// and for a value twice.
Axis parse_axis(const std::string& text);

// Key and value of every axis, in the order of the axes; the last axis varies fastest. Throws
// core::UsageError for a key twice and for more than 10,000 runs.
std::vector<std::vector<std::pair<std::string, std::string>>> combinations(
    const std::vector<Axis>& axes);

// A folder's name for one combination: "lr-1e-4_per_device-16", the last parts of the keys;
// letters, digits, '.', '_' and '-' only. A name that would be too long or ambiguous ends in a
// unique number.
std::string combination_name(const std::vector<std::pair<std::string, std::string>>& values);

}  // namespace scaletrain::launcher
