#include "lib/format/tar/label_text.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

TEST_CASE("a list of classes is JSON, or numbers with commas or white space between them") {
  using Labels = std::vector<std::int64_t>;
  for (const std::string text : {"[1, 5, 70]", "[1,5,70]\n", "1 5 70", " 1\t5\n70\n", "1,5, 70"}) {
    CAPTURE(text);
    CHECK(parse_labels(text) == Labels{1, 5, 70});
  }
  CHECK(parse_labels("[]") == Labels{});
  CHECK(parse_labels(" [ ] ") == Labels{});
  CHECK(parse_labels("[3]") == Labels{3});
  CHECK(parse_labels("3\n") == Labels{3});
  CHECK(!parse_labels(" "));
}

TEST_CASE("a class that a list names twice is found, and rows of zeros and ones are") {
  using Labels = std::vector<std::int64_t>;
  CHECK(repeated_label(Labels{3, 1, 3}) == 3);
  CHECK(!repeated_label(Labels{3, 1, 2}));
  CHECK(!repeated_label(Labels{}));
  CHECK(is_zeros_and_ones(Labels{0, 1, 0}));
  CHECK(!is_zeros_and_ones(Labels{0, 2}));
}
