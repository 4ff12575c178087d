#include "lib/data/set/subset.h"

#include <doctest/doctest.h>

#include <set>

#include "lib/data/set/open_dataset.h"
#include "tests/data/image_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)
namespace recipe = scaletrain::recipe;

namespace {

std::vector<std::string> samples_of(const Dataset& dataset) {
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

}  // namespace

TEST_CASE("a limit takes the same samples every time, spread over all shards") {
  const TemporaryFolder folder;
  recipe::Source source;
  for (int i = 0; i < 4; ++i) {
    source.shards.push_back(folder.write(fmt::format("{}.tar", i), grey_shard(0, 25)));
  }
  source.limit = 20;
  const auto dataset = open_dataset(source, "");
  CHECK(dataset->size() == 20);
  CHECK(shard_sizes(*dataset) == std::vector<std::int64_t>{20});
  const std::vector<std::string> samples = samples_of(*dataset);
  CHECK(std::set(samples.begin(), samples.end()).size() == 20);
  CHECK(samples == samples_of(*open_dataset(source, "")));
  std::set<std::string> shards;
  for (const std::string& sample : samples) shards.insert(sample.substr(0, sample.find('/')));
  CHECK(shards.size() == 4);

  source.limit = 10;  // a smaller one is a part of it
  const std::vector<std::string> fewer = samples_of(*open_dataset(source, ""));
  CHECK(fewer == std::vector(samples.begin(), samples.begin() + 10));

  source.limit = 100;  // as many as there are: the whole set in its own order
  CHECK(open_dataset(source, "")->shard_count() == 4);
}

TEST_CASE("messages name the shard that a subset's sample is from") {
  const TemporaryFolder folder;
  recipe::Source source;
  source.shards = {folder.write("a.tar", grey_shard(0, 3)),
                   folder.write("b.tar", grey_shard(3, 3))};
  source.limit = 4;
  const auto dataset = open_dataset(source, "");
  for (std::int64_t i = 0; i < 4; ++i) {
    const RawSample raw = dataset->read(0, i);
    CHECK(dataset->image_place(0, raw) ==
          fmt::format("{}: {}.png (byte {})", folder.file(raw.shard), raw.key, raw.offset));
    CHECK(dataset->label_place(0, raw) ==
          fmt::format("{}: {}.cls", folder.file(raw.shard), raw.key));
  }
}
