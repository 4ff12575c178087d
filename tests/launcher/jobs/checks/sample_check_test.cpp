#include "launcher/jobs/checks/sample_check.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/format/quarantine.h"
#include "lib/format/tar/label_rule.h"
#include "lib/format/tar/shard_index.h"
#include "lib/recipe/recipe.h"
#include "tests/temporary_folder.h"

using namespace scaletrain;  // NOLINT(google-build-using-namespace)

namespace {

recipe::Recipe recipe_of(recipe::Source train, std::int64_t per_device) {
  recipe::Recipe recipe;
  recipe.model.name = "mlp";
  recipe.data.train = std::move(train);
  recipe.batch = {.per_device = per_device, .accumulate = {}, .global = {}};
  return recipe;
}

// The number of samples that a step of one rank may take: up to 32, which all sets here are below.
std::optional<std::int64_t> counted(const recipe::Recipe& recipe) {
  try {
    launcher::check_samples(recipe, 1);
  } catch (const core::RecipeError& error) {
    const std::string text = error.what(), before = "more than the ";
    return std::stoll(text.substr(text.find(before) + before.size()));
  }
  return std::nullopt;
}

std::optional<std::int64_t> counted(const recipe::Source& train) {
  return counted(recipe_of(train, 32));
}

format::ShardVersion version_of(const std::string& shard) {
  struct stat status = {};
  REQUIRE(::stat(shard.c_str(), &status) == 0);
  return {.bytes = status.st_size,
          .mtime_ns = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
}

recipe::Source of_shards(std::vector<std::string> shards) {
  recipe::Source source;
  source.shards = std::move(shards);
  return source;
}

recipe::Source of_folder(const test::TemporaryFolder& folder) {
  recipe::Source source;
  source.folder = folder.path.string();
  return source;
}

void write_card(const test::TemporaryFolder& folder, std::int64_t bytes) {
  folder.write("card.json",
               fmt::format(R"({{"shards": [{{"name": "a.tar", "samples": 7, "bytes": {}}},
                               {{"name": "b.tar", "samples": 5, "bytes": 3}}]}})",
                           bytes));
}

}  // namespace

TEST_CASE("images of class folders are counted") {
  const test::TemporaryFolder folder;
  for (const char* const part : {"cat", "dog", ".hidden"}) {
    std::filesystem::create_directory(folder.path / part);
    for (const char* const name : {"a.png", "b.JPG", ".c.png", "notes.txt"}) {
      folder.write(fmt::format("{}/{}", part, name), "");
    }
  }
  CHECK(counted(of_folder(folder)) == 4);  // 2 in each of 2
  recipe::Source limited = of_folder(folder);
  limited.limit = 3;
  CHECK(counted(limited) == 3);
  recipe::Source both;
  both.sources = {limited, of_folder(folder)};
  CHECK(counted(both) == 7);
}

TEST_CASE("a folder without images, or none, is left to the workers") {
  const test::TemporaryFolder folder;
  CHECK(counted(of_folder(folder)) == std::nullopt);
  recipe::Source none;
  none.folder = (folder.path / "none").string();
  CHECK(counted(none) == std::nullopt);
}

TEST_CASE("samples of shards are those of card.json, if the shards have its sizes") {
  const test::TemporaryFolder folder;
  const std::string a = folder.write("a.tar", "abc"), b = folder.write("b.tar", "abc");
  const std::string c = folder.write("c.tar", "abc");
  CHECK(counted(of_shards({a, b})) == std::nullopt);
  write_card(folder, 3);
  CHECK(counted(of_shards({a, b})) == 12);
  CHECK(counted(of_shards({b})) == 5);
  CHECK(counted(of_shards({a, c})) == std::nullopt);  // the card has no c
  CHECK(counted(of_shards({a, "s3://bucket/b.tar"})) == std::nullopt);
  write_card(folder, 4);
  CHECK(counted(of_shards({a, b})) == std::nullopt);
  folder.write("card.json", "{");
  CHECK(counted(of_shards({a, b})) == std::nullopt);
}

TEST_CASE("an index of this version of the shard goes before the card") {
  const test::TemporaryFolder folder;
  const std::string a = folder.write("a.tar", "abc");
  write_card(folder, 3);
  format::ShardVersion version = version_of(a);
  const std::vector<format::IndexEntry> entries(2);
  folder.write("a.tar.idx", format::encode_index(entries, version));
  CHECK(counted(of_shards({a})) == 2);
  ++version.mtime_ns;
  folder.write("a.tar.idx", format::encode_index(entries, version));
  CHECK(counted(of_shards({a})) == 7);
}

TEST_CASE("an index in data.index_cache is found as the workers find it") {
  const test::TemporaryFolder folder;
  const std::string a = folder.write("a.tar", "abc"), cache = (folder.path / "cache").string();
  std::filesystem::create_directory(cache);
  recipe::Recipe recipe = recipe_of(of_shards({a}), 32);
  recipe.data.index_cache = cache;
  CHECK(counted(recipe) == std::nullopt);
  const std::string index = std::filesystem::path(format::index_path(a, cache)).filename().string();
  format::ShardVersion version = version_of(a);
  const std::vector<format::IndexEntry> entries(2), fewer(1);
  folder.write("cache/" + index, format::encode_index(entries, version));
  CHECK(counted(recipe) == 2);
  CHECK(counted(of_shards({a})) == std::nullopt);  // without the cache

  SUBCASE("an index of another label rule does not count") {
    recipe.data.label.field = "json";
    recipe.data.label.key = "class";
    CHECK(counted(recipe) == std::nullopt);
    version.excluded = format::LabelRule{.field = "json", .key = "class"}.digest();
    folder.write("cache/" + index, format::encode_index(fewer, version));
    CHECK(counted(recipe) == 1);
  }
  SUBCASE("an index that includes a sample in quarantine does not count") {
    folder.write("quarantine.json",
                 format::encode_quarantine(format::Quarantine({{"a.tar", "x", "no label"}})));
    CHECK(counted(recipe) == std::nullopt);
    version.excluded = format::excluded_digest(std::vector<std::string>{"x"});
    folder.write("cache/" + index, format::encode_index(fewer, version));
    CHECK(counted(recipe) == 1);
  }
  SUBCASE("an index beside the shard counts too") {
    const std::string b = folder.write("b.tar", "abcd");
    folder.write("b.tar.idx", format::encode_index(fewer, version_of(b)));
    recipe.data.train.shards.push_back(b);
    CHECK(counted(recipe) == 3);
  }
}

TEST_CASE("a shard in quarantine has no samples, and a damaged list is reported") {
  const test::TemporaryFolder folder;
  const std::string a = folder.write("a.tar", "abc"), b = folder.write("b.tar", "abc");
  write_card(folder, 3);
  folder.write("quarantine.json",
               format::encode_quarantine(format::Quarantine({{"a.tar", "", "not a tar"}})));
  CHECK(counted(of_shards({a, b})) == 5);
  folder.write("quarantine.json", "{");
  CHECK_THROWS_AS(launcher::check_samples(recipe_of(of_shards({a, b}), 32), 1),
                  core::CheckpointError);
}

TEST_CASE("a git-lfs pointer in place of classes.json is named") {
  const test::TemporaryFolder folder;
  const std::string a = folder.write("a.tar", "abc");
  folder.write("classes.json",
               "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n");
  recipe::Recipe recipe = recipe_of(of_shards({a}), 32);
  recipe.task = "image_classification";
  CHECK_THROWS_WITH_AS(launcher::check_samples(recipe, 1),
                       doctest::Contains("classes.json: is a git-lfs pointer, not the file itself"),
                       core::DataError);
}

TEST_CASE("an epoch must hold one global batch of all ranks") {
  const test::TemporaryFolder folder;
  const std::string a = folder.write("a.tar", "abc");
  write_card(folder, 3);
  CHECK_NOTHROW(launcher::check_samples(recipe_of(of_shards({a}), 7), 1));
  recipe::Recipe recipe = recipe_of(of_shards({a}), 2);
  CHECK_NOTHROW(launcher::check_samples(recipe, 3));
  CHECK_THROWS_WITH_AS(launcher::check_samples(recipe, 4),
                       "/batch: a global batch of 8 samples (per_device 2 x accumulate 1 x 4 "
                       "ranks) is more than the 7 samples of an epoch\n"
                       "  lower per_device or accumulate, use fewer ranks, or add data",
                       core::RecipeError);
  recipe.data.samples_per_epoch = 8;
  CHECK_NOTHROW(launcher::check_samples(recipe, 4));
  recipe.data.samples_per_epoch = 6;
  CHECK_THROWS_AS(launcher::check_samples(recipe, 4), core::RecipeError);
  recipe.data.samples_per_epoch = 0;
  // An elastic job of 3 ranks at most, which the batch does not fit.
  recipe.batch = {.per_device = 4, .accumulate = {}, .global = 8};
  CHECK_THROWS_WITH_AS(launcher::check_samples(recipe, 3),
                       "/batch: a global batch of 8 samples is more than the 7 samples of an "
                       "epoch\n"
                       "  lower per_device or accumulate, use fewer ranks, or add data",
                       core::RecipeError);
  recipe.data.train = {};
  recipe.data.train.tokens = {"a.bin"};
  CHECK_NOTHROW(launcher::check_samples(recipe, 3));
}
