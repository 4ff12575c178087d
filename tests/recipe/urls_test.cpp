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
      "{000000..000003} and {a,b} are expanded";
  CHECK(error_of(minimal_recipe(), {"data.train.shards=ftp://host/a.tar"}) ==
        "--set data.train.shards: \"ftp://host/a.tar\" has an unknown scheme" + use);
  CHECK(
      error_of(minimal_recipe(), {"data.train.shards=https://me:hunter2@host/a.tar?sig=hunter3"}) ==
      "--set data.train.shards: \"https://***@host/a.tar?***\" carries a "
      "password or a signature, which would be stored with the run" +
          use);
}

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

TEST_CASE("a cache needs a folder and a size") {
  const Recipe recipe = parse_recipe(minimal_recipe(), "r.json", {kCache});
  CHECK(recipe.data.cache->folder == "/c/x");
  CHECK(recipe.data.cache->max_bytes == 1 << 20);
  CHECK(error_of(minimal_recipe(), {R"(data.cache={"folder": "/c"})"})
            .find("\"max_bytes\" is missing") != std::string::npos);
}

TEST_CASE("a command needs a cache, wherever it is named") {
  const std::string remedy =
      ": /data: names a command (pipe:) and no \"cache\"\n"
      "  add \"cache\": {\"folder\": FOLDER, \"max_bytes\": N}, which keeps what it writes";
  for (const std::string set :
       {R"(data.train.shards="pipe:cat a.tar")", R"(data.val.shards=["a.tar", "pipe:cat a.tar"])",
        R"(data.train={"sources": [{"shards": "a.tar"}, {"shards": "pipe:cat a.tar"}]})"}) {
    CHECK(error_of(minimal_recipe(), {set}).ends_with(remedy));
    CHECK(error_of(minimal_recipe(), {set, kCache}) == "no error");
  }
}

TEST_CASE("compressed shards need a cache and, for training, the streamed order") {
  const std::string streamed = "data.order=streamed";
  CHECK(error_of(minimal_recipe(), {R"(data.train.shards="a-{0..1}.tar.gz")", kCache}) ==
        "r.json:3: /data/order: \"indexed\" reads from everywhere at once, and a-0.tar.gz is "
        "compressed\n"
        "  use \"streamed\", or tars that are not compressed: scaletrain data import tar");
  for (const std::string set :
       {R"(data.train.shards=["a.tar", "s3://b/a.tgz"])", R"(data.val.shards="a.tar.zst")"}) {
    CHECK(error_of(minimal_recipe(), {set, streamed})
              .ends_with(": /data: names compressed shards and no \"cache\"\n"
                         "  add \"cache\": {\"folder\": FOLDER, \"max_bytes\": N}, which keeps "
                         "what they hold"));
    CHECK(error_of(minimal_recipe(), {set, streamed, kCache}) == "no error");
  }
}

}  // namespace scaletrain::recipe
