#include "lib/core/process/host.h"

#include <doctest/doctest.h>

#include <string>

#include "lib/core/error.h"

namespace scaletrain::core {
namespace {

std::string refusal(const std::string& host) {
  try {
    check_host("--master-addr", host);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a host is a name or an address that a resolver takes") {
  const std::string longest(63, 'a');
  for (const std::string& host :
       {std::string("node-1"), std::string("node_1.cluster.local"), std::string("node-1."),
        std::string("10.0.0.1"), std::string("fd00::1"), std::string("::ffff:10.0.0.1"),
        std::string("fe80::1%eth0"), std::string("localhost"), std::string("0.0.0.0"),
        std::string("n1.2"), longest + "." + longest + "." + longest}) {
    CAPTURE(host);
    CHECK(refusal(host) == "");
  }
}

TEST_CASE("what no resolver takes is refused at once") {
  const std::string label(64, 'a');
  std::string name = "a";
  while (name.size() < 254) name += ".a";
  for (const std::string& host : {std::string(),
                                  std::string(" "),
                                  std::string("a b"),
                                  std::string("[::1]"),
                                  std::string("[::1]:5"),
                                  std::string("http://a"),
                                  std::string("http://a:5"),
                                  std::string("a/b"),
                                  std::string("a\n"),
                                  std::string("a\0b", 3),
                                  std::string("user@a"),
                                  std::string("a,b"),
                                  std::string("a;b"),
                                  std::string("node[1-2]"),
                                  std::string("*"),
                                  std::string("."),
                                  std::string(".a"),
                                  std::string("a..b"),
                                  std::string("-a"),
                                  std::string("10.0.0"),
                                  std::string("10.0.0.256"),
                                  std::string("29500"),
                                  std::string("224.0.0.1"),
                                  std::string("255.255.255.255"),
                                  std::string("ff02::1"),
                                  std::string("fe80::1"),
                                  std::string("fe80::1%"),
                                  std::string(":::"),
                                  std::string("fd00::g"),
                                  std::string("a:"),
                                  std::string(":5"),
                                  std::string("::1:"),
                                  label,
                                  name}) {
    CAPTURE(host);
    CHECK(refusal(host).find("is not a host name or address\n  give a name or an address") !=
          std::string::npos);
  }
}

TEST_CASE("a host with a port is refused with the flag of the port") {
  for (const char* const host : {"127.0.0.1:5", "node-1:29500", "localhost:1"}) {
    CAPTURE(host);
    CHECK(refusal(host) ==
          "--master-addr: \"" + std::string(host) +
              "\" has a port\n  give a name or an address alone, node-1, 10.0.0.1 or fd00::1, and "
              "the port by itself: --master-port or MASTER_PORT");
  }
}

TEST_CASE("loopback addresses, and those of all interfaces, are known by their form") {
  for (const char* const host : {"localhost", "127.0.0.1", "127.0.1.1", "::1"}) {
    CHECK(is_loopback(host));
  }
  for (const char* const host : {"node-1", "10.127.0.1", "fd00::1", "0.0.0.0"}) {
    CHECK_FALSE(is_loopback(host));
  }
  for (const char* const host : {"0.0.0.0", "::", "0:0::0"}) CHECK(is_any_address(host));
  for (const char* const host : {"127.0.0.1", "::1", "node-1", ""}) {
    CHECK_FALSE(is_any_address(host));
  }
  for (const char* const host : {"127.0.0.1", "10.0.0.1", "::1", "fe80::1%eth0"}) {
    CHECK(is_address(host));
  }
  for (const char* const host : {"node-1", "localhost", "0.0.0.0", "::", "224.0.0.1", ""}) {
    CHECK_FALSE(is_address(host));
  }
}

}  // namespace scaletrain::core
