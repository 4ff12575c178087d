// Class names of two sides: a class is the same where its name is, whatever its number.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace scaletrain::format {

// The classes that other sets are matched with: those of the training set.
struct ClassNames {
  std::vector<std::string> names = {};  // in order of class numbers; empty: only numbers are known
  std::string owner = {};               // for messages: "data.train", "the checkpoint"
};

// `"cat", "dog"`, of many the first ten and their count; "no name" for none.
std::string shown_classes(const std::vector<std::string>& names);

// The number that each class of `names` has in `known`. Throws core::DataError naming `place`: a
// name that `known` does not have; in lists that differ, a name of several classes.
std::vector<std::int64_t> numbers_by_name(const std::vector<std::string>& names,
                                          const ClassNames& known, const std::string& place);

}  // namespace scaletrain::format
