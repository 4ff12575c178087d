#include "lib/recipe/schema/type.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace scaletrain::recipe {

TEST_CASE("the schema of an enumeration describes its values if one of them has a help text") {
  CHECK(enum_schema({{"fp32", "Single precision."}, {"bf16", ""}}) ==
        Json::parse(R"({"enum": ["fp32", "bf16"],
                        "enumDescriptions": ["Single precision.", ""]})"));
  CHECK(enum_schema({{"fp32", ""}, {"bf16", ""}}) == Json::parse(R"({"enum": ["fp32", "bf16"]})"));
}

}  // namespace scaletrain::recipe
