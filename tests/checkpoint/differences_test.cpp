#include "lib/checkpoint/differences.h"

#include <doctest/doctest.h>

using namespace scaletrain;  // NOLINT(google-build-using-namespace)

TEST_CASE("three of a kind are named, and that there are more") {
  checkpoint::Differences missing("missing");
  std::vector<std::string> parts;
  missing.list(parts);
  CHECK(parts.empty());
  CHECK(missing.empty());
  for (const char* const name : {"a", "b", "c"}) missing.add(name);
  CHECK_FALSE(missing.empty());
  missing.list(parts);
  missing.add("d");
  missing.list(parts);
  CHECK((parts == std::vector<std::string>{"3 missing (a, b, c)", "4 missing (a, b, c, ...)"}));
}

TEST_CASE("a shape is shown as Python shows it") {
  CHECK(checkpoint::shape_text({64, 3, 7, 7}) == "[64, 3, 7, 7]");
  CHECK(checkpoint::shape_text({}) == "[]");
}
