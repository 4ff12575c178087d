#include "lib/data/set/mixture.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <thread>

#include "lib/data/loader/make_order.h"
#include "lib/data/set/open_dataset.h"
#include "tests/data/image_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)
namespace recipe = scaletrain::recipe;

namespace {

recipe::Source one(const std::string& shard, double weight = 1, bool balanced = false) {
  recipe::Source source;
  source.shards = {shard};
  source.weight = weight;
  source.balanced = balanced;
  return source;
}

}  // namespace

TEST_CASE("a mixture is the shards of its sources, one after the other's") {
  const TemporaryFolder folder;
  recipe::Source source;
  source.sources = {one(folder.write("a.tar", grey_shard(0, 3))),
                    one(folder.write("b.tar", grey_shard(7, 2)))};
  source.sources[0].shards.push_back(folder.write("c.tar", grey_shard(5, 4)));
  const auto dataset = open_dataset(source, "");
  CHECK(dataset->size() == 9);
  CHECK(shard_sizes(*dataset) == std::vector<std::int64_t>{3, 4, 2});
  const RawSample raw = dataset->read(2, 1);
  CHECK(raw.shard == "b.tar");
  CHECK(raw.image == grey_png(8));
  CHECK(dataset->label(2, 1) == 1);
  CHECK(dataset->image_place(2, raw) == folder.file("b.tar") + ": 00001.png (byte 2560)");
  CHECK(dataset->label_place(2, raw) == folder.file("b.tar") + ": 00001.cls");
}

TEST_CASE("the order of a mixture keeps the weights") {
  const TemporaryFolder folder;
  recipe::Source source;
  source.sources = {one(folder.write("a.tar", grey_shard(0, 30)), 1),
                    one(folder.write("b.tar", grey_shard(0, 10)), 3)};
  const auto dataset = open_dataset(source, "");
  const auto order = make_order(dataset, {.seed = 3});
  CHECK(order->size() == 40);
  std::map<std::int64_t, int> count;
  for (std::int64_t p = 0; p < 40; ++p) ++count[order->at(0, p).shard];
  CHECK(count[0] == 10);
  CHECK(count[1] == 30);
  CHECK(make_order(dataset, {.seed = 3, .samples_per_epoch = 100})->size() == 100);
}

TEST_CASE("a balanced source has every class as often") {
  const TemporaryFolder folder;
  const auto member = [](int i, const char* label) {
    return tar_member(fmt::format("{}.png", i), grey_png(1)) +
           tar_member(fmt::format("{}.cls", i), label);
  };
  std::string tar;
  for (int i = 0; i < 9; ++i) tar += member(i, "0");
  const auto dataset =
      open_dataset(one(folder.write("a.tar", tar + member(9, "1") + tar_end()), 1, true), "");
  const auto order = make_order(dataset, {.seed = 3});
  int ones = 0;
  for (std::int64_t p = 0; p < 10; ++p) {
    const SamplePlace place = order->at(2, p);
    ones += dataset->read(place.shard, place.sample).label == 1 ? 1 : 0;
  }
  CHECK(ones == 5);
}

TEST_CASE("a plain source keeps the order that it had before there were mixtures") {
  const TemporaryFolder folder;
  const auto dataset = open_dataset(one(folder.write("a.tar", grey_shard(0, 30))), "");
  const IndexedOrder before(3, {30}, 0);
  const auto order = make_order(dataset, {.seed = 3});
  for (std::int64_t p = 0; p < 30; ++p) CHECK(order->at(1, p) == before.at(1, p));
}

TEST_CASE("a lazy mixture knows of each stored shard what its sources know") {
  const TemporaryFolder folder;
  recipe::Source source;
  source.sources = {one(folder.write("a.tar", grey_shard(0, 3))),
                    one(folder.write("b.tar", grey_shard(0, 20)))};
  source.sources[1].shards.push_back(folder.write("c.tar", grey_shard(0, 20)));
  source.sources[1].limit = 30;  // of both its shards
  source.sources[0].shards.push_back(folder.write("d.tar", grey_shard(0, 4)));
  const auto dataset = open_dataset(source, "", {.lazy = true});
  CHECK(dataset->known_sizes() == std::vector<std::int64_t>{-1, -1, 20, 20});
  CHECK(dataset->shard_size(1) == 4);
  CHECK(dataset->shard_size(2) == 15);
  CHECK(dataset->shard_path(1) == folder.file("d.tar"));
  CHECK(dataset->known_sizes() == std::vector<std::int64_t>{-1, 4, 20, 20});
  CHECK(dataset->open_digests()[0] == -1);
  CHECK(dataset->open_digests()[1] >= 0);

  const std::vector<std::int64_t> known = dataset->known_sizes();
  const auto resumed = open_dataset(source, "", {.lazy = true, .shard_sizes = known});
  CHECK(resumed->known_sizes() == known);
  CHECK(resumed->open_digests() == std::vector<std::int64_t>(4, -1));
  const std::vector<std::int64_t> other{-1, 5, 20, 20};
  CHECK(message_of([&] {
          open_dataset(source, "", {.lazy = true, .shard_sizes = other})->read(1, 0);
        }).starts_with(folder.file("d.tar") + ": has 4 samples, and had 5 before"));
}

TEST_CASE("shards of all sources are fetched ahead together") {
  const TemporaryFolder folder;
  recipe::Source source;
  source.sources = {one("pipe:cat " + folder.write("a.tar", grey_shard(0, 3))),
                    one("pipe:cat " + folder.write("b.tar", grey_shard(0, 20)))};
  const recipe::Cache cache{folder.file("cache"), 1 << 24};
  const auto stores = std::make_shared<const scaletrain::storage::Stores>(recipe::Storage{}, cache);
  const auto dataset = open_dataset(source, "", {.lazy = true, .stores = stores});
  dataset->announce({1, 0});
  const auto kept = [&cache] {
    return std::count_if(std::filesystem::directory_iterator(cache.folder), {},
                         [](const auto& file) { return file.path().extension() == ".data"; });
  };
  while (kept() < 2) std::this_thread::yield();
  CHECK(dataset->known_sizes() == std::vector<std::int64_t>{-1, -1});
}
