#include "lib/replica/address.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"

namespace scaletrain::replica {

TEST_CASE("addresses are what their text says") {
  const std::vector<Address> all{{.hosts = {"10.0.0.1", "fd99::1"}, .port = 5, .secret = "ab"},
                                 {.hosts = {"node-2"}, .port = 65535, .secret = "ab"}};
  CHECK(to_text(all) == "5@10.0.0.1,fd99::1 65535@node-2");
  const std::vector<Address> read = parse_addresses(to_text(all), "ab");
  REQUIRE(read.size() == 2);
  CHECK(read[0].hosts == all[0].hosts);
  CHECK(read[0].port == 5);
  CHECK(read[1].secret == "ab");
  CHECK(to_text(read) == to_text(all));
  CHECK(parse_addresses("", "ab").empty());
}

TEST_CASE("what is no address is refused") {
  for (const char* const text : {"a", "5", "5@", "@5@h", "0@h", "65536@h", "x@h"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_addresses(text, "ab"), core::InternalError);
  }
}

}  // namespace scaletrain::replica
