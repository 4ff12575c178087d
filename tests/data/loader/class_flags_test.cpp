#include "lib/data/loader/class_flags.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

namespace {

// The flags as digits, or what is wrong with the label.
std::string flags_of(const std::vector<std::int64_t>& labels, std::size_t classes,
                     ListFormat format = ListFormat::kAuto) {
  std::vector<std::uint8_t> flags(classes, 9);
  if (const auto problem = set_class_flags(labels, format, flags)) return problem->found;
  std::string text;
  for (const std::uint8_t flag : flags) text += static_cast<char>('0' + flag);
  return text;
}

}  // namespace

TEST_CASE("a list of class numbers sets their flags") {
  CHECK(flags_of({1, 4}, 5) == "01001");
  CHECK(flags_of({}, 3) == "000");
  CHECK(flags_of({1, 0}, 3) == "110");
  CHECK(flags_of({0}, 1) == "1");  // a class alone is no row
  CHECK(flags_of({1, 0}, 2, ListFormat::kClassNumbers) == "11");
}

TEST_CASE("a list that may be a multi-hot row is read as one only where that is said") {
  CHECK(flags_of({0, 1, 0, 0, 1}, 5) == "is a list of 5 zeros and ones, one for each class");
  CHECK(flags_of({0, 1}, 2) == "is a list of 2 zeros and ones, one for each class");
  CHECK(flags_of({0, 1, 0, 0, 1}, 5, ListFormat::kMultiHot) == "01001");
  CHECK(flags_of({0, 0, 0}, 3, ListFormat::kMultiHot) == "000");
  CHECK(flags_of({0, 1}, 3, ListFormat::kMultiHot) ==
        "is not a list of 3 zeros and ones, as /data/label_format requires");
  CHECK(flags_of({0, 2, 1}, 3, ListFormat::kMultiHot) ==
        "is not a list of 3 zeros and ones, as /data/label_format requires");
}

TEST_CASE("a class that is named twice, or that the model does not have, is refused") {
  CHECK(flags_of({2, 1, 2}, 5) == "names class 2 twice");
  CHECK(flags_of({0, 1, 0}, 5) == "names class 0 twice");  // a row of another number of classes
  CHECK(flags_of({0, 1, 0, 1}, 4, ListFormat::kClassNumbers) == "names class 0 twice");
  CHECK(flags_of({1, 5}, 5) == "label 5 is not in 0..4");
}
