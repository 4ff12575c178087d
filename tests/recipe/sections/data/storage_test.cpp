#include "lib/recipe/sections/data/storage.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

TEST_CASE("the server of s3:// is a URL without path and password") {
  const auto endpoint_of = [](const std::string& value) {
    return parse_recipe(minimal_recipe(), "r.json", {"storage.endpoint=" + value}).storage.endpoint;
  };
  CHECK(endpoint_of("http://127.0.0.1:9000") == "http://127.0.0.1:9000");
  CHECK(endpoint_of("https://[::1]:9000") == "https://[::1]:9000");
  const std::string use = "\n  use a server as https://HOST or http://HOST:PORT";
  for (const std::string wrong : {"host:9000", "https://", "https://a/b", "ftp://a"}) {
    CHECK(error_of(minimal_recipe(), {"storage.endpoint=" + wrong}) ==
          "--set storage.endpoint: \"" + wrong +
              "\" is not a server as https://HOST or http://HOST:PORT" + use);
  }
  CHECK(error_of(minimal_recipe(), {"storage.endpoint=https://me:hunter2@host"}) ==
        "--set storage.endpoint: \"https://***@host\" is not a server as "
        "https://HOST or http://HOST:PORT" +
            use);
}

}  // namespace scaletrain::recipe
