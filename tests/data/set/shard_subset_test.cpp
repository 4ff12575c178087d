#include "lib/data/set/shard_subset.h"

#include <doctest/doctest.h>

#include <map>
#include <numeric>
#include <set>

#include "lib/data/set/open_dataset.h"
#include "tests/data/image_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)
namespace recipe = scaletrain::recipe;

namespace {

recipe::Source shards_of(const TemporaryFolder& folder, const std::vector<int>& sizes) {
  recipe::Source source;
  for (const int size : sizes) {
    source.shards.push_back(
        folder.write(fmt::format("{}.tar", source.shards.size()), grey_shard(0, size)));
  }
  return source;
}

std::vector<std::string> kept_samples(const Dataset& dataset) {
  std::vector<std::string> result;
  for (std::int64_t shard = 0; shard < dataset.shard_count(); ++shard) {
    for (std::int64_t i = 0; i < dataset.shard_size(shard); ++i) {
      const RawSample raw = dataset.read(shard, i);
      CHECK(dataset.label(shard, i) == raw.label);
      result.push_back(raw.shard + "/" + raw.key);
    }
  }
  return result;
}

std::int64_t opened(const Dataset& dataset) {
  const std::vector<std::int64_t> sizes = dataset.known_sizes();
  return std::count_if(sizes.begin(), sizes.end(), [](std::int64_t size) { return size >= 0; });
}

}  // namespace

TEST_CASE("a limit of a lazy set opens as few shards as hold it, and takes alike many of each") {
  const TemporaryFolder folder;
  recipe::Source source = shards_of(folder, std::vector<int>(8, 25));
  source.limit = 60;
  const auto dataset = open_dataset(source, "", {.lazy = true});
  CHECK(dataset->size() == 60);
  CHECK(shard_sizes(*dataset) == std::vector<std::int64_t>{20, 20, 20});
  CHECK(opened(*dataset) == 3);
  CHECK(dataset->known_sizes().size() == 8);  // of the shards as they are stored
  CHECK(dataset->open_digests().size() == 8);
  const std::vector<std::string> samples = kept_samples(*dataset);
  CHECK(std::set(samples.begin(), samples.end()).size() == 60);
  CHECK(samples == kept_samples(*open_dataset(source, "", {.lazy = true})));
}

TEST_CASE("shards that are smaller than the others give all that they have") {
  const TemporaryFolder folder;
  recipe::Source source = shards_of(folder, {3, 40, 0, 7, 40});
  source.limit = 70;  // 3 + 7 + 30 + 30
  const auto dataset = open_dataset(source, "", {.lazy = true});
  std::vector<std::int64_t> sizes = shard_sizes(*dataset);
  CHECK(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) == 70);
  std::map<std::string, int> by_shard;
  for (const std::string& sample : kept_samples(*dataset)) {
    ++by_shard[sample.substr(0, sample.find('/'))];
  }
  for (const auto& [name, count] : by_shard) {
    const int size = name == "0.tar" ? 3 : name == "3.tar" ? 7 : 40;
    CHECK(count <= size);
    if (size < 40) CHECK(count == size);
  }
}

TEST_CASE("a limit above what a lazy set has is all of it") {
  const TemporaryFolder folder;
  recipe::Source source = shards_of(folder, {3, 5, 2});
  source.limit = 10;
  CHECK(open_dataset(source, "", {.lazy = true})->size() == 10);
  source.limit = 1000;
  const auto dataset = open_dataset(source, "", {.lazy = true});
  CHECK(dataset->size() == 10);
  const std::vector<std::string> samples = kept_samples(*dataset);
  CHECK(std::set(samples.begin(), samples.end()).size() == 10);
}

TEST_CASE("a resume that knows the sizes chooses the same samples and opens nothing") {
  const TemporaryFolder folder;
  recipe::Source source = shards_of(folder, {25, 20, 25, 30});
  source.limit = 40;
  const auto before = open_dataset(source, "", {.lazy = true});
  const auto dataset =
      open_dataset(source, "", {.lazy = true, .shard_sizes = before->known_sizes()});
  CHECK(dataset->open_digests() == std::vector<std::int64_t>(4, -1));
  CHECK(kept_samples(*dataset) == kept_samples(*before));
}

TEST_CASE("messages name the shard that a sample of a lazy subset is from") {
  const TemporaryFolder folder;
  recipe::Source source = shards_of(folder, {3, 3});
  source.limit = 4;
  const auto dataset = open_dataset(source, "", {.lazy = true});
  for (std::int64_t shard = 0; shard < 2; ++shard) {
    const RawSample raw = dataset->read(shard, 1);
    CHECK(dataset->image_place(shard, raw) ==
          fmt::format("{}: {}.png (byte {})", folder.file(raw.shard), raw.key, raw.offset));
    CHECK(dataset->label_place(shard, raw) ==
          fmt::format("{}: {}.cls", folder.file(raw.shard), raw.key));
    CHECK(dataset->shard_path(shard) == folder.file(raw.shard));
  }
}
