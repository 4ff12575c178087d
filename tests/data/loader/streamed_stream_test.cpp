// Batches of several sources in the streamed order.
#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "lib/data/loader/image_stream.h"
#include "lib/data/set/open_dataset.h"
#include "tests/data/image_support.h"
#include "tests/data/loader/batch_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)
namespace core = scaletrain::core;
namespace recipe = scaletrain::recipe;

namespace {

LoaderOptions streamed_options(int threads) {
  LoaderOptions options;
  options.image_size = 4;
  options.num_classes = 10;
  options.seed = 9;
  options.threads = threads;
  options.prefetch = 2;
  return options;
}

}  // namespace

TEST_CASE("streamed sources, limits and balanced classes do not depend on ranks and threads") {
  const TemporaryFolder folder;
  const auto shards = [&](int first, int count) {
    recipe::Source source;
    for (int i = 0; i < count; ++i) {
      source.shards.push_back(
          folder.write(fmt::format("{}.tar", first + i), grey_shard(10 * (first + i), 10)));
    }
    return source;
  };
  recipe::Source source;
  source.sources = {shards(0, 6), shards(6, 3), shards(9, 2)};
  source.sources[0].weight = 2;
  source.sources[1].limit = 12;
  source.sources[2].balanced = true;
  const auto pool = core::make_host_pool();
  const auto run = [&](int ranks, std::int64_t accumulate, int threads) {
    LoaderOptions options = streamed_options(threads);
    options.streamed = true;
    options.lanes = 4;
    std::map<std::int64_t, std::multiset<std::vector<int>>> batches;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto loader = train_images(open_dataset(source, "", {.lazy = true}), options,
                                       {rank, ranks, 2, accumulate}, *pool);
      CHECK(loader->steps_per_epoch() == 11);  // 60 + 12 + 20 samples, 8 a step
      loader->seek({1, 5});                    // in the middle of an epoch
      for (std::int64_t i = 0; i < 60 * accumulate; ++i) {
        batches[i / accumulate].insert(numbers(*loader->next()));
      }
    }
    return batches;
  };
  const auto one = run(1, 4, 1);
  CHECK(run(2, 2, 3) == one);
  CHECK(run(4, 1, 8) == one);
  std::map<int, int> by_source, by_class;
  std::set<int> limited;
  for (const auto& [step, batches] : one) {
    for (const std::vector<int>& batch : batches) {
      for (const int number : batch) {
        const int which = number < 60 ? 0 : number < 90 ? 1 : 2;
        ++by_source[which];
        if (which == 1) limited.insert(number);
        if (which == 2) ++by_class[number % 10];
      }
    }
  }
  CHECK(std::abs(by_source[0] - 240) <= 60);  // of 480, from the middle of a block of turns
  CHECK(std::abs(by_source[1] - by_source[2]) <= 60);
  CHECK(limited.size() == 12);
  CHECK(by_class.size() == 10);
}
