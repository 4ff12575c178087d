#include "lib/core/housekeeping.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/log.h"

namespace scaletrain::core {
namespace {

std::vector<std::string> warnings_of(const std::function<void()>& body) {
  std::vector<std::string> lines;
  set_warning_listener([&](const std::string& line) { lines.push_back(line); });
  body();
  set_warning_listener({});
  return lines;
}

// Fails as often as it is told to.
std::function<void()> failing(int times, const std::string& found) {
  return [times, found]() mutable {
    if (times-- > 0) throw StorageError("a/b", found);
  };
}

TEST_CASE("work that fails once is tried again without a message") {
  Housekeeping housekeeping;
  CHECK(warnings_of([&] { CHECK(housekeeping.attempt("it stays", failing(1, "EIO"))); }).empty());
  CHECK(housekeeping.failures() == 0);
}

TEST_CASE("each failure is counted, each cause is warned about once") {
  Housekeeping housekeeping;
  const std::vector<std::string> lines = warnings_of([&] {
    for (const char* step : {"1", "2", "3"}) {
      const std::string found = std::string("cannot rename step-") + step + " to this: (EIO)";
      CHECK(!housekeeping.attempt("it stays", failing(2, found)));
    }
    CHECK(!housekeeping.attempt("it stays", failing(2, "cannot remove: (EPERM)")));
    CHECK(!housekeeping.attempt("the link is behind", failing(2, "cannot link: (EPERM)")));
    housekeeping.note("a/c", "cannot link: (EPERM)", "a file is used");
  });
  CHECK(housekeeping.failures() == 5);  // a note is none
  CHECK(lines ==
        std::vector<std::string>{"warning: a/b: cannot rename step-1 to this: (EIO); it stays",
                                 "warning: a/b: cannot remove: (EPERM); it stays",
                                 "warning: a/b: cannot link: (EPERM); the link is behind",
                                 "warning: a/c: cannot link: (EPERM); a file is used"});
}

TEST_CASE("an error of another kind is not housekeeping's") {
  Housekeeping housekeeping;
  CHECK_THROWS_AS(housekeeping.attempt("it stays", [] { throw std::runtime_error("a bug"); }),
                  std::runtime_error);
}

}  // namespace
}  // namespace scaletrain::core
