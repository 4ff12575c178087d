// Matches the classes of two sets by name: a class is identified by its name, not by its number.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace scaletrain::format {

// The classes of the training set, with which other sets are matched.
struct ClassNames {
  std::vector<std::string> names = {};  // in order of class numbers; empty: only numbers are known
  std::string owner = {};               // for messages: "data.train", "the checkpoint"
};

// Returns `"cat", "dog"`; of more than ten names the first ten and the count; "no name" for none.
std::string shown_classes(const std::vector<std::string>& names);

// Returns the number in `known` of each class of `names`. Throws core::DataError naming `place` for
// a name that `known` does not have, or for a repeated name in lists that differ.
std::vector<std::int64_t> numbers_by_name(const std::vector<std::string>& names,
                                          const ClassNames& known, const std::string& place);

}  // namespace scaletrain::format
