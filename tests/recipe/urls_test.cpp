// Shards that are URLs, and the keys that say how they are reached.
#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {
namespace {

const std::string kCache = R"(data.cache={"folder": "/c/x", "max_bytes": 1048576})";

std::vector<std::string> shards_of(const std::string& value) {
  return parse_recipe(minimal_recipe(), "r.json", {"data.train.shards=" + value, kCache})
      .data.train.shards;
}

}  // namespace

TEST_CASE("URLs are expanded and stay as they are") {
  CHECK(shards_of("s3://bucket//a/../x-{0..1}.tar") ==
        std::vector<std::string>{"s3://bucket//a/../x-0.tar", "s3://bucket//a/../x-1.tar"});
  CHECK(shards_of(R"(["https://host/a.tar?download=1", "gs://b/k", "file:///d/a.tar"])") ==
        std::vector<std::string>{"https://host/a.tar?download=1", "gs://b/k", "/d/a.tar"});
  CHECK(shards_of("pipe:aws s3 cp s3://b/x-{7..8}.tar -") ==
        std::vector<std::string>{"pipe:aws s3 cp s3://b/x-7.tar -",
                                 "pipe:aws s3 cp s3://b/x-8.tar -"});
}

TEST_CASE("an unknown scheme and a secret in a URL are refused, and the secret is not shown") {
  const std::string use =
      "\n  use a path or URL (http, https, s3, gs, pipe) or a list of them, also A::B; "
      "{000000..000003} and {a,b} are expanded; on disks, s3 and gs also * and folders";
  CHECK(error_of(minimal_recipe(), {"data.train.shards=ftp://host/a.tar"}) ==
        "--set data.train.shards: \"ftp://host/a.tar\" has an unknown scheme" + use);
  CHECK(
      error_of(minimal_recipe(), {"data.train.shards=https://me:hunter2@host/a.tar?sig=hunter3"}) ==
      "--set data.train.shards: \"https://***@host/a.tar?***\" carries a "
      "password or a signature, which would be stored with the run" +
          use);
}

TEST_CASE("a second place for checkpoints is a folder or a bucket, outside of the run's folder") {
  const auto mirror = [](const std::string& value) {
    return parse_recipe(minimal_recipe(), "r.json",
                        {"output=/runs/a", "checkpoint.mirror=" + value})
        .checkpoint.mirror;
  };
  const auto error = [](const std::string& value) {
    return error_of(minimal_recipe(), {"output=/runs/a", "checkpoint.mirror=" + value});
  };
  CHECK(mirror("/far/../copies/") == "/copies");
  CHECK(mirror("/runs/ab") == "/runs/ab");
  CHECK(mirror("s3://bucket") == "s3://bucket");
  CHECK(mirror("s3://bucket/runs/a//") == "s3://bucket/runs/a");
  const std::string use = "\n  use a folder or s3://BUCKET/PREFIX";
  CHECK(error("s3:///a") == "--set checkpoint.mirror: \"s3:///a\" names no bucket" + use);
  CHECK(error("gs://b/a") == "--set checkpoint.mirror: \"gs://b/a\" cannot be written to" + use);
  CHECK(error("s3://me:hunter2@b/a").find("hunter2") == std::string::npos);
  for (const char* const inside : {"/runs/a", "/runs/a/copies", "/runs", "/"}) {
    CAPTURE(inside);
    CHECK(error(inside) ==
          std::string("--set checkpoint.mirror: \"") + inside +
              "\" and the run's own folder, \"/runs/a\", contain each other\n  use a folder on "
              "another disk, or s3://BUCKET/PREFIX");
  }
}

}  // namespace scaletrain::recipe
