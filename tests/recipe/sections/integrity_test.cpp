#include "lib/recipe/sections/integrity.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

TEST_CASE("replicas are not compared by default, and every 50 steps if integrity is on") {
  CHECK_FALSE(parse_recipe(minimal_recipe(), "r.json").integrity.has_value());
  const Integrity integrity = *parse_recipe(minimal_recipe(), "r.json", {"integrity={}"}).integrity;
  CHECK(integrity.every == 50);
  CHECK(integrity.action == "stop");
  CHECK(integrity.products == "off");
}

TEST_CASE("an unknown action is refused with the known ones, and an interval of 0 steps") {
  CHECK(error_of(minimal_recipe(), {"integrity.action=vote"}) ==
        "--set integrity.action: \"vote\" is not a choice here\n"
        R"(  use one of: "stop", "restore")");
  CHECK(error_of(minimal_recipe(), {"integrity.every=0"}).starts_with("--set integrity.every: "));
}

TEST_CASE("restore needs replicas that are equal after each step") {
  CHECK(error_of(minimal_recipe(), {"integrity.action=restore", "sync=periodic"}) ==
        "--set integrity.action: restore needs replicas that are equal after each step, and /sync "
        "lets them differ\n"
        "  use \"stop\", or leave \"sync\" out");
  CHECK(error_of(minimal_recipe(), {"integrity={}", "sync=periodic"}) == "no error");
}

}  // namespace scaletrain::recipe
