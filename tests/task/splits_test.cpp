#include <doctest/doctest.h>

#include "lib/task/task.h"

namespace scaletrain::task {

TEST_CASE("sets are found by the names that they have in the metrics") {
  recipe::Data data;
  data.train.folder = "t";
  data.test.emplace().folder = "e";
  data.extra["day"].folder = "d";
  data.extra["night"].folder = "n";
  CHECK(name_of(Split::kTrain, data) == "train");
  CHECK(source_of(data, Split::kTrain).folder == "t");
  CHECK_FALSE(find_split(data, "val").has_value());
  CHECK_FALSE(find_split(data, "day").has_value());
  CHECK_FALSE(find_split(data, "extra/noon").has_value());
  struct Case {
    const char *name, *folder;
  };
  for (const Case& one : {Case{"test", "e"}, {"extra/day", "d"}, {"extra/night", "n"}}) {
    const std::optional<Split> split = find_split(data, one.name);
    REQUIRE(split.has_value());
    CHECK(name_of(*split, data) == one.name);
    CHECK(source_of(data, *split).folder == one.folder);
  }
  CHECK((find_split(data, "extra/night") == extra_split(1)));
  data.val.emplace().folder = "v";
  CHECK((find_split(data, "val") == Split::kVal));
  CHECK(name_of(Split::kVal, data) == "val");
  CHECK(source_of(data, Split::kVal).folder == "v");
}

}  // namespace scaletrain::task
