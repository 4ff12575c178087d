#include "lib/recipe/sections/data/data.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

namespace {

const std::string kNodeCache = R"(data.cache={"folder": "/c/x", "max_bytes": 1048576})";

}  // namespace

TEST_CASE("the policy of bad samples may be just its name") {
  const Recipe recipe = parse_recipe(minimal_recipe(), "r.json", {"data.bad_samples=skip"});
  CHECK(recipe.data.bad_samples.policy == "skip");
  CHECK(recipe.data.bad_samples.max_rate == 0.01);
  CHECK(parse_recipe(minimal_recipe(), "r.json").data.bad_samples.policy == "fail");
}

TEST_CASE("a label may be just the name of its field, and comes back from JSON") {
  const auto label_of = [](const std::string& value) {
    const Recipe recipe = parse_recipe(minimal_recipe(), "r.json", {"data.label=" + value});
    CHECK(parse_recipe(to_json(recipe), "again").data.label == recipe.data.label);
    return recipe.data.label;
  };
  CHECK(parse_recipe(minimal_recipe(), "r.json").data.label == Label{});
  CHECK(label_of("json") == Label{.field = "json", .key = {}});
  CHECK(label_of("folder") == Label{.field = "folder", .key = {}});
  CHECK(label_of(R"({"field": "json", "key": "label"})") == Label{.field = "json", .key = "label"});
  CHECK(error_of(minimal_recipe(), {R"(data.label={"field": "folder", "key": "label"})"}) ==
        "--set data.label: /data/label/key: does not go with \"folder\", which is not a field\n"
        "  leave it out");
}

TEST_CASE(
    "JPEGs are decoded strictly, and pictures have a limit, unless the recipe says otherwise") {
  const Recipe usual = parse_recipe(minimal_recipe(), "r.json");
  CHECK(usual.data.jpeg == "strict");
  CHECK(usual.data.max_pixels == 100'000'000);
  const Recipe other =
      parse_recipe(minimal_recipe(), "r.json", {"data.jpeg=lenient", "data.max_pixels=400000000"});
  const Recipe again = parse_recipe(to_json(other), "again");
  CHECK(again.data.jpeg == "lenient");
  CHECK(again.data.max_pixels == 400'000'000);
}

TEST_CASE("an evaluated image is not resized to less than is cut out of it") {
  const std::vector<std::string> sets{"data.image_size=224", "data.eval_resize=256"};
  CHECK(parse_recipe(minimal_recipe(), "r.json", sets).data.eval_resize == 256);
  CHECK(error_of(minimal_recipe(), {"data.eval_resize=200"}) ==
        "--set data.eval_resize: 200 is less than \"image_size\", which is 224\n"
        "  use 256 as timm and torchvision do, or 0");
}

TEST_CASE("with one channel the averages of mean and std are used") {
  const Normalize normalize{.mean = {0.5, 0.25, 0}, .std = {1, 2, 3}};
  CHECK(for_channels(normalize, 3).mean == normalize.mean);
  CHECK(for_channels(normalize, 3).std == normalize.std);
  CHECK(for_channels(normalize, 1).mean == std::vector<double>{0.25, 0.25, 0.25});
  CHECK(for_channels(normalize, 1).std == std::vector<double>{2, 2, 2});
}

TEST_CASE("further held-out sets have names, and are checked as the others are") {
  const Recipe recipe = parse_recipe(
      minimal_recipe(), "r.json",
      {R"(data.extra={"night": {"shards": "n.tar", "limit": 9}})", "data.extra.day.folder=d"});
  const Data& data = recipe.data;
  CHECK(data.extra.size() == 2);
  CHECK(data.extra.at("night").shards.front().ends_with("/n.tar"));
  CHECK(data.extra.at("night").limit == 9);
  CHECK(data.extra.at("day").folder.ends_with("/d"));
  std::vector<std::string> names;
  for (const auto& [name, source] : held_out(data)) names.push_back(name);
  CHECK(std::vector<std::string>(names.end() - 2, names.end()) ==
        std::vector<std::string>{"extra/day", "extra/night"});
  CHECK(parse_recipe(to_json(recipe), "again").data.extra.at("night").limit == 9);

  CHECK(error_of(minimal_recipe(), {R"(data.extra={"a b": {"shards": "n.tar"}})"}) ==
        "--set data.extra: /data/extra/a b: \"a b\" cannot be a name\n"
        "  use at most 100 letters, digits, '.', '_' and '-', not '.' or '-' first");
  CHECK(error_of(minimal_recipe(), {"data.extra=[]"}).find("is not an object") !=
        std::string::npos);
  CHECK(error_of(minimal_recipe(), {"data.extra.day.tokens=a.bin"})
            .find("is of tokens, and /data/train of images") != std::string::npos);
}

TEST_CASE("a cache needs a folder and a size") {
  const Recipe recipe = parse_recipe(minimal_recipe(), "r.json", {kNodeCache});
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
    CHECK(error_of(minimal_recipe(), {set, kNodeCache}) == "no error");
  }
}

TEST_CASE("compressed shards need a cache and, for training, the streamed order") {
  const std::string streamed = "data.order=streamed";
  CHECK(error_of(minimal_recipe(), {R"(data.train.shards="a-{0..1}.tar.gz")", kNodeCache}) ==
        "r.json:3: /data/order: \"indexed\" reads all shards at the same time, and a-0.tar.gz is "
        "compressed\n"
        "  use \"streamed\", or tars that are not compressed: scaletrain data import tar");
  for (const std::string set :
       {R"(data.train.shards=["a.tar", "s3://b/a.tgz"])", R"(data.val.shards="a.tar.zst")"}) {
    CHECK(error_of(minimal_recipe(), {set, streamed})
              .ends_with(": /data: names compressed shards and no \"cache\"\n"
                         "  add \"cache\": {\"folder\": FOLDER, \"max_bytes\": N}, which keeps "
                         "what they hold"));
    CHECK(error_of(minimal_recipe(), {set, streamed, kNodeCache}) == "no error");
  }
}

TEST_CASE("an epoch has a step at least") {
  CHECK(error_of(minimal_recipe(), {"data.samples_per_epoch=10", "batch.per_device=32"}) ==
        "--set data.samples_per_epoch: 10 are less than a step's 32\n"
        "  use more, a smaller batch, or 0 for as many as the set has");
}

TEST_CASE("lanes are shared among the ranks") {
  CHECK_NOTHROW(check_lanes(64, 4));
  CHECK_THROWS_WITH_AS(check_lanes(64, 3),
                       "/data/lanes: 64 is not a multiple of the 3 ranks\n"
                       "  change one of them; another number of lanes changes the data order",
                       core::RecipeError);
}

}  // namespace scaletrain::recipe
