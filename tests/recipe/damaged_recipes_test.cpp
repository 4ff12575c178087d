// Every shipped recipe, as it is and with every optional section, loses keys or has them
// misspelled: the outcome is a recipe or a list of mistakes, whatever the checks between sections
// read.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/recipe/load.h"
#include "tests/long_form.h"

namespace scaletrain::recipe {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kSampledPairs = 12;  // of a recipe, in the short form

// The optional sections, so that each check between two sections has both. Values that exclude each
// other are meant: the checks report them.
constexpr const char* kSections = R"({
  "ema": {"decay": 0.9}, "swa": {"every": {"steps": 2}}, "sam": {"rho": 0.1},
  "sync": {"name": "diloco", "steps": 8, "fragments": 2}, "compress": {"name": "powersgd"},
  "clip": {"adaptive": 0.1}, "early_stopping": {"patience": 2}, "recompute": {"every": 2},
  "offload": {"optimizer": true, "parameters": true}, "precision": {"name": "fp8"},
  "parallel": {"shard": 2, "expert": 2, "context": 2, "tensor": 2, "sequence": true,
               "pipeline": 2, "schedule": "interleaved", "chunks": 2},
  "loss": {"label_smoothing": 0.1, "chunk": 8}, "mix": {"mixup": 0.2},
  "schedule": {"decay": "cosine", "plateau": {"patience": 1}}, "device": "cpu",
  "checkpoint": {"writers": "rank_0", "every": {"steps": 5}},
  "optimizer": {"groups": [{"match": "*.bias", "lr_scale": 0.5, "weight_decay": 0}]}
})";

// The project's recipes, found from the folder that tests run in.
fs::path recipes_folder() {
  for (fs::path folder = fs::current_path();; folder = folder.parent_path()) {
    if (fs::exists(folder / "recipes" / "digits_mlp.json")) return folder / "recipes";
    REQUIRE_MESSAGE(folder.has_relative_path(), "no folder above holds recipes/digits_mlp.json");
  }
}

struct Shipped {
  std::string path;
  json recipe;
};

std::vector<Shipped> shipped_recipes() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(recipes_folder())) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Shipped> all;
  for (const fs::path& path : paths) {
    json recipe = json::parse(core::read_file(path, 1 << 20, core::ExitCode::kUsage), nullptr,
                              /*allow_exceptions=*/true, /*ignore_comments=*/true);
    all.push_back({path.string(), recipe});
    recipe.merge_patch(json::parse(kSections));
    all.push_back({path.string(), std::move(recipe)});
  }
  return all;
}

// Every key at every depth, in lists too.
void add_keys(const json& value, const json::json_pointer& at,
              std::vector<json::json_pointer>& keys) {
  for (std::size_t i = 0; value.is_array() && i < value.size(); ++i) {
    add_keys(value[i], at / i, keys);
  }
  if (!value.is_object()) return;
  for (const auto& [name, inner] : value.items()) {
    const json::json_pointer key = at / name;
    keys.push_back(key);
    add_keys(inner, key, keys);
  }
}

enum class Damage { kRemoved, kMisspelled };

// Does nothing where an earlier damage took the key's parent away.
void damage(json& recipe, const json::json_pointer& key, Damage how) {
  if (!recipe.contains(key)) return;
  json& parent = recipe.at(key.parent_pointer());
  if (how == Damage::kMisspelled) parent[key.back() + "x"] = parent.at(key.back());
  parent.erase(key.back());
}

// "" if parsing gives a recipe or an error of the recipe, otherwise what else came of it.
std::string unexpected_outcome(const json& recipe, const std::string& path) {
  try {
    static_cast<void>(parse_recipe(recipe.dump(), path));
  } catch (const core::RecipeError&) {
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a shipped recipe without one of its keys, or with one misspelled, is no crash") {
  const std::vector<Shipped> all = shipped_recipes();
  CHECK(all.size() >= 20);
  for (const Shipped& shipped : all) {
    std::vector<json::json_pointer> keys;
    add_keys(shipped.recipe, json::json_pointer(), keys);
    for (const json::json_pointer& key : keys) {
      for (const Damage how : {Damage::kRemoved, Damage::kMisspelled}) {
        CAPTURE(shipped.path);
        CAPTURE(key.to_string());
        json changed = shipped.recipe;
        damage(changed, key, how);
        CHECK(unexpected_outcome(changed, shipped.path).empty());
      }
    }
  }
}

TEST_CASE("two keys of a shipped recipe that are removed or misspelled are no crash") {
  std::mt19937 draw(1);  // the same pairs in each run
  for (const Shipped& shipped : shipped_recipes()) {
    std::vector<json::json_pointer> keys;
    add_keys(shipped.recipe, json::json_pointer(), keys);
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    for (std::size_t a = 0; a < keys.size(); ++a) {
      for (std::size_t b = a + 1; b < keys.size(); ++b) pairs.emplace_back(a, b);
    }
    std::shuffle(pairs.begin(), pairs.end(), draw);
    if (!testing::is_long_form()) pairs.resize(std::min(pairs.size(), kSampledPairs));
    for (const auto& [a, b] : pairs) {
      for (const Damage first : {Damage::kRemoved, Damage::kMisspelled}) {
        for (const Damage second : {Damage::kRemoved, Damage::kMisspelled}) {
          CAPTURE(shipped.path);
          const std::string damaged = keys[a].to_string() + " " + keys[b].to_string();
          CAPTURE(damaged);
          json changed = shipped.recipe;
          damage(changed, keys[a], first);
          damage(changed, keys[b], second);
          CHECK(unexpected_outcome(changed, shipped.path).empty());
        }
      }
    }
  }
}

TEST_CASE(
    "a recipe with more mistakes than are kept runs no check of a section that was not read") {
  json recipe = json::parse(kSections);
  recipe["model"] = {{"name", "mlp"}, {"num_classes", 10}};
  recipe["epochs"] = 1;
  recipe["optimizer"] = {{"name", "sgdd"}, {"lr", 0.1}};
  recipe["data"] = {{"train", {{"shards", "a.tar"}}}};
  for (int i = 0; i < 150; ++i) recipe["data"][fmt::format("unknown_{}", i)] = i;
  CHECK(unexpected_outcome(recipe, "r.json").empty());
}

}  // namespace scaletrain::recipe
