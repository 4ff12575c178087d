#include "lib/format/tar/class_names.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/format/tar/tar_support.h"

namespace scaletrain::format {
namespace {

using Names = std::vector<std::string>;

// The numbers by name, or the message.
std::string matched(const Names& names, const Names& known) {
  std::string text;
  const std::string message = message_of([&] {
    text = fmt::format("{}", numbers_by_name(names, {known, "data.train"}, "val"));
  });
  return text.empty() ? message : text;
}

TEST_CASE("classes get the numbers that their names have on the other side") {
  CHECK(matched({"a", "b", "c"}, {"a", "b", "c"}) == "[0, 1, 2]");
  CHECK(matched({"a", "c"}, {"a", "b", "c"}) == "[0, 2]");
  CHECK(matched({"c", "a", "b"}, {"a", "b", "c"}) == "[2, 0, 1]");
}

TEST_CASE("a name that the other side does not have is refused, with the names that it has") {
  CHECK(matched({"cat", "dgo"}, {"cat", "dog", "emu"}) ==
        "val: has the class \"dgo\", which data.train does not have\n"
        "  data.train has \"cat\", \"dog\", \"emu\": rename or leave out what is not among them; "
        "other classes need a new run; did you mean \"dog\"?");
  CHECK(matched({"x", "y"}, {"cat"})
            .starts_with("val: has the classes \"x\", \"y\", which data.train does not have\n"));
  Names many;
  for (int i = 0; i < 1000; ++i) many.push_back(fmt::format("class {:03}", i));
  CHECK(shown_classes(many).ends_with(R"("class 008", "class 009", ... (1000 in all))"));
  CHECK(shown_classes({}) == "no name");
  CHECK(shown_classes({"a\nb"}) == R"("a\nb")");
}

TEST_CASE("a name of several classes matches only where both lists are the same") {
  CHECK(matched({"crane", "crane"}, {"crane", "crane"}) == "[0, 1]");
  for (const auto& [names, known] : {std::pair<Names, Names>{{"crane"}, {"crane", "crane"}},
                                     std::pair<Names, Names>{{"crane", "crane"}, {"crane"}}}) {
    CHECK(
        matched(names, known) ==
        "val: its classes are matched by name with those of data.train, and \"crane\" is the name "
        "of several classes\n"
        "  give each class a name of its own, or use the list of data.train");
  }
}

}  // namespace
}  // namespace scaletrain::format
