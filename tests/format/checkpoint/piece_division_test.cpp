#include "lib/format/checkpoint/piece_division.h"

#include <doctest/doctest.h>

using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

using Portions = std::vector<Portion>;

// Every element is one writer's, in order, and no writer has more than its share and an element.
void check_division(const std::vector<Extent>& tensors, int writers) {
  const std::vector<Portions> portions = divide(tensors, writers);
  REQUIRE(portions.size() == static_cast<std::size_t>(writers));
  std::int64_t all = 0, largest = 0;
  for (const Extent& tensor : tensors) {
    all += tensor.elements * tensor.element_bytes;
    largest = std::max(largest, tensor.element_bytes);
  }
  std::size_t tensor = 0;
  std::int64_t next = 0;
  for (const Portions& own : portions) {
    std::int64_t bytes = 0;
    for (const Portion& portion : own) {
      while (next == tensors[tensor].elements) {
        ++tensor;
        next = 0;
      }
      CHECK(portion.tensor == tensor);
      CHECK(portion.first == next);
      CHECK(portion.last > portion.first);
      next = portion.last;
      bytes += (portion.last - portion.first) * tensors[tensor].element_bytes;
    }
    CHECK(bytes <= all / writers + largest);
  }
  while (tensor < tensors.size() && next == tensors[tensor].elements) {
    ++tensor;
    next = 0;
  }
  CHECK(tensor == tensors.size());
}

}  // namespace

TEST_CASE("writers have equal shares of the bytes, and tensors are cut where one ends") {
  // 40, 8 and 16 bytes: 64, of which each of 4 writes 16.
  const std::vector<Extent> tensors{{10, 4}, {1, 8}, {8, 2}};
  CHECK(divide(tensors, 4) ==
        std::vector<Portions>{{{0, 0, 4}}, {{0, 4, 8}}, {{0, 8, 10}, {1, 0, 1}}, {{2, 0, 8}}});
  CHECK(divide(tensors, 1) == std::vector<Portions>{{{0, 0, 10}, {1, 0, 1}, {2, 0, 8}}});
}

TEST_CASE("an element is whole, whatever the number of writers") {
  CHECK(divide({{1, 8}}, 3) == std::vector<Portions>{{}, {}, {{0, 0, 1}}});
  CHECK(divide({{0, 4}, {0, 2}}, 2) == std::vector<Portions>{{}, {}});
  CHECK(divide({}, 2) == std::vector<Portions>{{}, {}});
  for (const int writers : {1, 2, 3, 5, 8, 64}) {
    CAPTURE(writers);
    check_division({{10, 4}, {0, 4}, {1, 8}, {8, 2}, {7, 1}, {1, 4}, {100, 8}}, writers);
    check_division({{3, 8}}, writers);
  }
}

TEST_CASE("more bytes than a product with the writers could count are divided") {
  const std::int64_t many = std::int64_t{1} << 59;
  const std::vector<Portions> portions = divide({{many, 8}}, 1024);
  CHECK(portions[0] == Portions{{0, 0, many / 1024}});
  CHECK(portions[1023] == Portions{{0, many / 1024 * 1023, many}});
}
