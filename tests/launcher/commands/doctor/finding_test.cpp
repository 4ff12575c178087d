#include "launcher/commands/doctor/finding.h"

#include <doctest/doctest.h>

namespace scaletrain::launcher {
namespace {

TEST_CASE("findings are lines with their remedies, and one that failed counts") {
  Findings findings{well("disk", "fine\n"), warning("clock", "late", "set it")};
  CHECK_FALSE(any_failed(findings));
  findings.push_back(failure("names", "none", "add one"));
  CHECK(any_failed(findings));
  CHECK(to_text(findings) ==
        "ok       disk   fine\\n\n"
        "warning  clock  late\n"
        "                -> set it\n"
        "failed   names  none\n"
        "                -> add one\n");
  CHECK(to_json(findings).find("\"ok\": false") != std::string::npos);
  CHECK(to_json(findings).find("\"state\": \"warning\"") != std::string::npos);
}

}  // namespace
}  // namespace scaletrain::launcher
