#include "launcher/commands/doctor/network.h"

#include <doctest/doctest.h>

namespace scaletrain::launcher {
namespace {

using State = Finding::State;

TEST_CASE("the loopback interface takes connections") {
  CHECK(check_ports()[0].state == State::kOk);
}

TEST_CASE("names that resolve, names that do not, and names of other machines") {
  CHECK(check_name("x", "localhost", true).state == State::kOk);
  for (const std::string address : {"127.0.0.1", "127.0.1.1", "::1"}) {
    const Finding finding = check_name("x", address, true);
    CHECK(finding.state == State::kWarning);
    CHECK(finding.found ==
          "\"" + address + "\" is " + address + ", which only this machine can reach");
  }
  CHECK(check_name("x", "no such name", false).state == State::kFailed);
  // TEST-NET-1 belongs to nobody.
  CHECK(check_name("x", "192.0.2.1", false).state == State::kOk);
  CHECK(check_name("x", "192.0.2.1", true).found ==
        "\"192.0.2.1\" is 192.0.2.1, which this machine does not have");
}

}  // namespace
}  // namespace scaletrain::launcher
