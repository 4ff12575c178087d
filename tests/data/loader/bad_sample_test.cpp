#include "lib/data/loader/bad_sample.h"

#include <doctest/doctest.h>

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

// 60 samples in three shards, of which those with 7 as their last digit do not decode.
class BadShards {
 public:
  BadShards() {
    recipe::Source source;
    for (int shard = 0; shard < 3; ++shard) {
      std::string tar;
      for (int i = 20 * shard; i < 20 * shard + 20; ++i) {
        tar += tar_member(fmt::format("{:02d}.png", i),
                          i % 10 == 7 ? "bad" : grey_png(static_cast<std::uint8_t>(i))) +
               tar_member(fmt::format("{:02d}.cls", i), "0");
      }
      source.shards.push_back(folder.write(fmt::format("{}.tar", shard), tar + tar_end()));
    }
    dataset = open_dataset(source, "");
  }

  TemporaryFolder folder;
  std::shared_ptr<const Dataset> dataset;
  std::unique_ptr<core::BufferPool> pool = core::make_host_pool();
};

LoaderOptions skipping(int threads) {
  LoaderOptions options;
  options.image_size = 4;
  options.num_classes = 10;
  options.seed = 9;
  options.threads = threads;
  options.skip_bad = true;
  return options;
}

}  // namespace

TEST_CASE("a bad sample is replaced by the same one at any number of ranks and threads") {
  const BadShards shards;
  struct Run {
    std::map<std::int64_t, std::multiset<std::vector<int>>> batches;  // by step
    std::set<std::string> skipped;
    std::uint64_t digest = 0;
  };
  const auto run = [&](int ranks, std::int64_t accumulate, int threads) {
    Run result;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto loader = train_images(shards.dataset, skipping(threads),
                                       {rank, ranks, 4, accumulate}, *shards.pool);
      for (std::int64_t i = 0; i < 9 * accumulate; ++i) {  // three epochs
        const Batch batch = *loader->next();
        CHECK(batch.count == 4);
        result.batches[i / accumulate].insert(numbers(batch));
        result.digest += batch.digest;
        for (const BadSample& bad : batch.skipped) {
          CHECK(bad.reason ==
                "the image does not decode: its first bytes are not those of PNG, JPEG, WebP or "
                "rgb8");
          result.skipped.insert(fmt::format("{} {} {}", bad.epoch, bad.position, bad.place));
        }
      }
    }
    return result;
  };
  const Run one = run(1, 4, 1);
  CHECK(one.skipped.size() > 10);  // 6 in each epoch of 60, less what its tail leaves out
  for (const auto& [step, batches] : one.batches) {
    for (const auto& batch : batches) {
      for (const int number : batch) CHECK(number % 10 != 7);
    }
  }
  for (const Run& other : {run(4, 1, 1), run(2, 2, 5)}) {
    CHECK(other.batches == one.batches);
    CHECK(other.skipped == one.skipped);
    CHECK(other.digest == one.digest);
  }
}

TEST_CASE("evaluation leaves bad samples out and names them") {
  const BadShards shards;
  for (const std::int64_t per_device : {1, 7, 64}) {
    const auto loader =
        eval_images(shards.dataset, skipping(3), {.per_device = per_device}, *shards.pool);
    std::vector<int> seen;
    std::vector<std::string> keys;
    while (const auto batch = loader->next()) {
      for (const int number : numbers(*batch)) seen.push_back(number);
      CHECK(batch->targets == batch->count);
      CHECK(labels_of(*batch).size() == static_cast<std::size_t>(batch->count));
      for (const BadSample& bad : batch->skipped) keys.push_back(bad.shard + "/" + bad.key);
    }
    std::vector<int> expected;
    for (int i = 0; i < 60; ++i) {
      if (i % 10 != 7) expected.push_back(i);
    }
    CHECK(seen == expected);
    CHECK(keys == std::vector<std::string>{"0.tar/07", "0.tar/17", "1.tar/27", "1.tar/37",
                                           "2.tar/47", "2.tar/57"});
  }
}

TEST_CASE("a set of bad samples alone ends with an error, not in a search without end") {
  std::string tar;
  for (int i = 0; i < 8; ++i) {
    tar += tar_member(fmt::format("{}.png", i), "bad") + tar_member(fmt::format("{}.cls", i), "0");
  }
  const TemporaryFolder folder;
  recipe::Source source;
  source.shards = {folder.write("a.tar", tar + tar_end())};
  const auto pool = core::make_host_pool();
  const auto loader = train_images(open_dataset(source, ""), skipping(2), {.per_device = 4}, *pool);
  const std::string text = message_of([&] { loader->next(); });
  CHECK(text.find("the image does not decode: its first bytes are not those of PNG, JPEG, WebP or "
                  "rgb8, as 99 other "
                  "samples drawn in its place") != std::string::npos);
}

TEST_CASE("a JPEG that libjpeg only warns about is named with the key that decodes it") {
  std::string file = encode_jpeg({16, 16, 3, std::vector<std::uint8_t>(768, 90)});
  file.insert(file.find("\xff\xc4"), 5, '\0');  // as in Oxford-IIIT Pet and COCO
  const TemporaryFolder folder;
  recipe::Source source;
  source.shards = {
      folder.write("a.tar", tar_member("0.jpg", file) + tar_member("0.cls", "0") + tar_end())};
  LoaderOptions options = skipping(1);
  options.skip_bad = false;
  const auto pool = core::make_host_pool();
  const auto set = open_dataset(source, "");
  CHECK(message_of([&] { eval_images(set, options, {.per_device = 1}, *pool)->next(); })
            .ends_with("extraneous bytes before marker 0xc4\n"
                       "  set \"jpeg\": \"lenient\" in \"data\", which decodes what libjpeg only "
                       "warns about"));
  options.decode.lenient_jpeg = true;
  CHECK(eval_images(set, options, {.per_device = 1}, *pool)->next()->count == 1);
}
