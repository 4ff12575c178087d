#include "launcher/place/hostlist.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

using Hosts = std::vector<std::string>;

Hosts expand(const std::string& text) { return expand_hostlist("SLURM_STEP_NODELIST", text); }

TEST_CASE("names, ranges and lists in brackets") {
  CHECK(expand("login") == Hosts{"login"});
  CHECK(expand("a,b-1,c.d") == Hosts{"a", "b-1", "c.d"});
  CHECK(expand("gpu[01-03,7],login") == Hosts{"gpu01", "gpu02", "gpu03", "gpu7", "login"});
  CHECK(expand("n[8-11]") == Hosts{"n8", "n9", "n10", "n11"});
  CHECK(expand("n[098-101]x") == Hosts{"n098x", "n099x", "n100x", "n101x"});
  CHECK(expand("r[1-2]n[3,5]") == Hosts{"r1n3", "r1n5", "r2n3", "r2n5"});
}

TEST_CASE("what is no list is refused, a huge one too") {
  for (const std::string text :
       {"", ",", "a,", "a[", "a]", "a[1", "a[]", "a[1-]", "a[-1]", "a[3-1]", "a[x]", "a[[1]]",
        "a[1,]", "a[0-99999999]", "a[0-999]b[0-999]", "a[1-2-3]", "a[9999999999]"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(expand(text),
                         ("SLURM_STEP_NODELIST: \"" + text +
                          "\" is not a list of hosts\n  it should look like gpu[01-03,7],login")
                             .c_str(),
                         core::UsageError);
  }
}

}  // namespace
}  // namespace scaletrain::launcher
