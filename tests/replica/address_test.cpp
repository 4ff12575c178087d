#include "lib/replica/address.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"

namespace scaletrain::replica {

TEST_CASE("addresses are what their text says") {
  const std::vector<Address> all{{.hosts = {"10.0.0.1", "fd99::1"}, .port = 5, .word = "ab"},
                                 {.hosts = {"node-2"}, .port = 65535, .word = "c"}};
  CHECK(to_text(all) == "ab@5@10.0.0.1,fd99::1 c@65535@node-2");
  const std::vector<Address> read = parse_addresses(to_text(all));
  REQUIRE(read.size() == 2);
  CHECK(read[0].hosts == all[0].hosts);
  CHECK(read[0].port == 5);
  CHECK(read[1].word == "c");
  CHECK(to_text(read) == to_text(all));
  CHECK(parse_addresses("").empty());
}

TEST_CASE("what is no address is refused") {
  for (const char* const text : {"a", "a@5", "a@5@", "@5@h", "a@0@h", "a@65536@h", "a@x@h"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_addresses(text), core::InternalError);
  }
}

TEST_CASE("words differ") { CHECK(new_word() != new_word()); }

}  // namespace scaletrain::replica
