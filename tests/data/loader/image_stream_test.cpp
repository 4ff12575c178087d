#include "lib/data/loader/image_stream.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "lib/data/order/order.h"
#include "lib/data/set/open_dataset.h"
#include "tests/data/image_support.h"
#include "tests/data/loader/batch_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)
namespace core = scaletrain::core;
namespace recipe = scaletrain::recipe;

namespace {

// 30 samples in three shards; the value of every pixel is the number of the sample.
class Shards {
 public:
  Shards() {
    recipe::Source source;
    for (int i = 0; i < 3; ++i) {
      source.shards.push_back(folder.write(fmt::format("{}.tar", i), grey_shard(10 * i, 10)));
    }
    dataset = open_dataset(source, "");
  }

  TemporaryFolder folder;
  std::shared_ptr<const Dataset> dataset;
  std::unique_ptr<core::BufferPool> pool = core::make_host_pool();
};

LoaderOptions options_of(int threads = 1) {
  LoaderOptions options;
  options.image_size = 4;
  options.num_classes = 10;
  options.seed = 9;
  options.threads = threads;
  options.prefetch = 2;
  return options;
}

// What position `position` should hold.
int number_at(const Shards& shards, std::int64_t epoch, std::int64_t position) {
  const IndexedOrder order(9, shard_sizes(*shards.dataset), 0);
  const SamplePlace place = order.at(epoch, position);
  return static_cast<int>(10 * place.shard + place.sample);
}

std::string error_of(const std::string& tar, std::int64_t num_classes) {
  const TemporaryFolder folder;
  recipe::Source source;
  source.shards = {folder.write("a.tar", tar)};
  const auto pool = core::make_host_pool();
  LoaderOptions options = options_of();
  options.num_classes = num_classes;
  const auto loader = eval_images(open_dataset(source, ""), options, {.per_device = 4}, *pool);
  std::string text = message_of([&] { loader->next(); });
  CHECK(text == message_of([&] { loader->next(); }));  // it stays
  if (text.starts_with(folder.path.string() + "/")) text.erase(0, folder.path.string().size() + 1);
  return text;
}

}  // namespace

TEST_CASE("samples with any number of classes have a flag for each class") {
  const TemporaryFolder folder;
  recipe::Source source;
  source.shards = {folder.write(
      "a.tar", tar_member("1.png", grey_png(1)) + tar_member("1.cls", "[3, 0]") +
                   tar_member("2.png", grey_png(2)) + tar_member("2.cls", "[]") +
                   tar_member("3.png", grey_png(3)) + tar_member("3.cls", "1") + tar_end())};
  const auto pool = core::make_host_pool();
  LoaderOptions options = options_of();
  options.num_classes = 4;
  options.multi_label = true;
  const auto set = open_dataset(source, "");
  const Batch batch = *eval_images(set, options, {.per_device = 4}, *pool)->next();
  CHECK(batch.count == 3);
  CHECK(batch.targets == 3);
  const std::span<std::uint8_t> flags = class_flags_of(batch);
  CHECK(std::vector<std::uint8_t>(flags.begin(), flags.end()) ==
        std::vector<std::uint8_t>{1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0});
  options.num_classes = 3;
  const std::string path = source.shards.front();
  CHECK(message_of([&] { eval_images(set, options, {.per_device = 4}, *pool)->next(); }) ==
        path + ": 1.cls: label 3 is not in 0..2\n  correct the label, or set /model/num_classes");
  options.multi_label = false;
  CHECK(message_of([&] { eval_images(set, options, {.per_device = 4}, *pool)->next(); }) ==
        path +
            ": 1.cls: is a list of 2 classes\n"
            "  add \"task\": \"multi_label_classification\" to the recipe, or correct the label");
  source.balanced = true;
  CHECK(message_of([&] {
          train_images(open_dataset(source, ""), options, {.per_device = 2}, *pool);
        }) == path +
                  ": 1.cls: is a list of classes, and its source is balanced by class\n"
                  "  leave out \"balanced\"");
}

TEST_CASE("with a ramp the size of a step's images follows its place in the data alone") {
  Shards shards;
  LoaderOptions options = options_of(2);
  options.resize_ramp =
      recipe::ResizeRamp{.from = 8, .over = {recipe::Duration::Unit::kSteps, 4}, .multiple_of = 2};
  options.image_size = 16;
  const auto sizes = [&](ReaderSlice slice, Position from) {
    const auto loader = train_images(shards.dataset, options, slice, *shards.pool);
    loader->seek(from);
    std::vector<std::int64_t> result;
    for (std::int64_t i = 0; i < 4 * slice.accumulate; ++i) {
      const Batch batch = *loader->next();
      const std::int64_t size = image_size_of(batch);
      CHECK(batch.columns.layout()[kPixels].size == size * size * 3);
      CHECK(static_cast<std::int64_t>(pixels_of(batch).size()) == batch.count * size * size * 3);
      if (i % slice.accumulate == 0) result.push_back(size);
    }
    return result;
  };
  // 12 samples a step, 2 steps an epoch.
  const std::vector<std::int64_t> expected{8, 10, 12, 14};
  CHECK(sizes({0, 1, 12, 1}, {}) == expected);
  for (int rank = 0; rank < 2; ++rank) CHECK(sizes({rank, 2, 3, 2}, {}) == expected);
  CHECK(sizes({0, 1, 12, 1}, {1, 1}) == std::vector<std::int64_t>{14, 16, 16, 16});
  const auto held_out = eval_images(shards.dataset, options, {.per_device = 4}, *shards.pool);
  CHECK(image_size_of(*held_out->next()) == 16);
}

TEST_CASE("a rank reads its blocks of every global batch, epoch after epoch") {
  Shards shards;
  // 2 ranks x 2 micro-steps x 3 samples: 12 a step, 2 steps an epoch, 6 left out.
  for (int rank = 0; rank < 2; ++rank) {
    const auto loader = train_images(shards.dataset, options_of(), {rank, 2, 3, 2}, *shards.pool);
    CHECK(loader->steps_per_epoch() == 2);
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      for (std::int64_t step = 0; step < 2; ++step) {
        for (std::int64_t micro = 0; micro < 2; ++micro) {
          const Batch batch = *loader->next();
          CHECK(batch.epoch == epoch);
          CHECK(batch.count == 3);
          const std::int64_t begin = step * 12 + (micro * 2 + rank) * 3;
          std::uint64_t digest = 0;
          for (std::int64_t i = 0; i < 3; ++i) {
            const int number = number_at(shards, epoch, begin + i);
            CHECK(numbers(batch)[static_cast<std::size_t>(i)] == number);
            CHECK(labels_of(batch)[static_cast<std::size_t>(i)] == number % 10);
            digest +=
                sample_digest(epoch, begin + i, shards.dataset->read(number / 10, number % 10));
          }
          CHECK(batch.digest == digest);
        }
      }
    }
  }
}

TEST_CASE(
    "the samples of a step do not depend on the number of ranks, threads or the accumulation") {
  Shards shards;
  const auto steps = [&](int ranks, std::int64_t accumulate, int threads) {
    std::map<std::int64_t, std::multiset<std::vector<int>>>
        batches;  // by step: sets of micro-batches
    std::uint64_t digest = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto loader = train_images(shards.dataset, options_of(threads),
                                       {rank, ranks, 2, accumulate}, *shards.pool);
      for (std::int64_t i = 0; i < 9 * accumulate; ++i) {
        const Batch batch = *loader->next();
        batches[i / accumulate].insert(numbers(batch));
        digest += batch.digest;
      }
    }
    return std::pair(batches, digest);
  };
  const auto one = steps(1, 4, 1);
  CHECK(steps(4, 1, 1) == one);
  CHECK(steps(2, 2, 3) == one);
}

TEST_CASE("seek continues exactly, in the middle of an epoch too") {
  Shards shards;
  LoaderOptions options = options_of(2);
  options.augment = {component("random_crop", {{"padding", std::int64_t{1}}})};
  const ReaderSlice slice{1, 2, 3, 1};
  const auto straight = train_images(shards.dataset, options, slice, *shards.pool);
  std::vector<std::vector<std::uint8_t>> batches;
  for (int i = 0; i < 15; ++i) {  // 5 steps an epoch
    const Batch batch = *straight->next();
    batches.emplace_back(pixels_of(batch).begin(), pixels_of(batch).end());
  }
  const auto sought = train_images(shards.dataset, options, slice, *shards.pool);
  for (const int from : {7, 0, 12, 4}) {
    sought->seek({from / 5, from % 5});
    for (int i = from; i < std::min(from + 4, 15); ++i) {
      const Batch batch = *sought->next();
      CHECK(std::vector(pixels_of(batch).begin(), pixels_of(batch).end()) ==
            batches[static_cast<std::size_t>(i)]);
    }
  }
}

TEST_CASE("fewer samples than a global batch is reported with the numbers") {
  Shards shards;
  try {
    train_images(shards.dataset, options_of(), {0, 2, 4, 4}, *shards.pool);
    FAIL("nothing was thrown");
  } catch (const core::RecipeError& error) {
    CHECK(
        std::string(error.what()) ==
        "/batch: a global batch of 32 samples (per_device 4 x accumulate 4 x 2 ranks) is more than "
        "the 30 samples of an epoch\n  lower per_device or accumulate, use fewer ranks, or add "
        "data");
  }
}

TEST_CASE("evaluation sees every sample once, in blocks in turn, without padding") {
  Shards shards;
  for (const int ranks : {1, 2, 3, 4}) {
    CAPTURE(ranks);
    std::vector<int> seen;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto loader =
          eval_images(shards.dataset, options_of(2), {rank, ranks, 4, 1}, *shards.pool);
      for (int round = 0; round < 2; ++round) {
        std::int64_t block = rank;
        while (const auto batch = loader->next()) {
          const auto found = numbers(*batch);
          CHECK(found.front() == block * 4);
          CHECK(batch->count == std::min<std::int64_t>(4, 30 - block * 4));
          if (round == 0) seen.insert(seen.end(), found.begin(), found.end());
          block += ranks;
        }
        CHECK(block * 4 >= 30);
        CHECK(!loader->next());
        loader->seek({});
      }
    }
    CHECK(std::set(seen.begin(), seen.end()).size() == 30);
    CHECK(seen.size() == 30);
  }
}

TEST_CASE("a batch outlives its loader, and its buffer returns to the pool") {
  Shards shards;
  std::optional<Batch> batch;
  {
    const auto loader = train_images(shards.dataset, options_of(), {0, 1, 5, 1}, *shards.pool);
    batch = loader->next();
  }
  CHECK(numbers(*batch).size() == 5);
  const auto* const address = reinterpret_cast<const std::byte*>(pixels_of(*batch).data());
  const auto* const end = reinterpret_cast<const std::byte*>(labels_of(*batch).data() + 5);
  const auto bytes = static_cast<std::size_t>(end - address);
  batch.reset();
  std::vector<core::Buffer> taken;
  bool returned = false;
  for (int i = 0; i < 10; ++i) {
    taken.push_back(shards.pool->take(bytes));
    returned = returned || taken.back().bytes().data() == address;
  }
  CHECK(returned);
}

TEST_CASE("a label that is no class is reported with shard, key and range") {
  const std::string tar = tar_member("x.png", grey_png(1)) + tar_member("x.cls", "12") + tar_end();
  CHECK(error_of(tar, 10) ==
        "a.tar: x.cls: label 12 is not in 0..9\n  correct the label, or set /model/num_classes");
  CHECK(error_of(tar, 13) == "nothing was thrown");
}

TEST_CASE("an image that does not decode is reported with shard, key and place") {
  const std::string png = grey_png(1),
                    remedy =
                        "\n  replace the image or leave the sample out; \"bad_samples\": "
                        "\"skip\" takes another one in its place";
  const auto shard = [](const std::string& image) {
    return tar_member("0.png", grey_png(0)) + tar_member("0.cls", "0") +
           tar_member("1.png", image) + tar_member("1.cls", "0") + tar_end();
  };
  CHECK(error_of(shard(png.substr(0, png.size() - 5)), 10) ==
        "a.tar: 1.png (byte 2560): the image does not decode: the file is truncated" + remedy);
  CHECK(error_of(shard("text"), 10) ==
        "a.tar: 1.png (byte 2560): the image does not decode: its first bytes are not those "
        "of PNG, JPEG, WebP or rgb8" +
            remedy);
}

TEST_CASE(
    "the error names the first of several bad samples of a batch, whichever thread found it") {
  std::string tar;
  for (int i = 0; i < 40; ++i) {
    tar += tar_member(fmt::format("{:02d}.png", i), i >= 5 ? "bad" : grey_png(0)) +
           tar_member(fmt::format("{:02d}.cls", i), "0");
  }
  const TemporaryFolder folder;
  recipe::Source source;
  source.shards = {folder.write("a.tar", tar + tar_end())};
  const auto dataset = open_dataset(source, "");
  const auto pool = core::make_host_pool();
  for (int i = 0; i < 10; ++i) {
    const auto loader = eval_images(dataset, options_of(4), {.per_device = 40}, *pool);
    CHECK(message_of([&] { loader->next(); }).starts_with(source.shards[0] + ": 05.png (byte "));
  }
}

TEST_CASE("the streamed order reads the same batches at any number of ranks and threads") {
  const Shards shards;
  const auto run = [&](int ranks, std::int64_t accumulate, int threads) {
    LoaderOptions options = options_of(threads);
    options.streamed = true;
    options.lanes = 4;
    std::map<std::int64_t, std::multiset<std::vector<int>>> batches;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto loader =
          train_images(shards.dataset, options, {rank, ranks, 2, accumulate}, *shards.pool);
      CHECK(loader->steps_per_epoch() == 3);
      loader->seek({1, 1});  // in the middle of an epoch
      for (std::int64_t i = 0; i < 9 * accumulate; ++i) {
        batches[i / accumulate].insert(numbers(*loader->next()));
      }
    }
    return batches;
  };
  const auto one = run(1, 4, 1);
  CHECK(run(2, 2, 3) == one);
  CHECK(run(4, 1, 8) == one);
}

TEST_CASE("ranks that do not divide the lanes are reported") {
  const Shards shards;
  LoaderOptions options = options_of();
  options.streamed = true;
  options.lanes = 4;
  try {
    train_images(shards.dataset, options, {0, 3, 2, 1}, *shards.pool);
    FAIL("nothing was thrown");
  } catch (const core::RecipeError& error) {
    CHECK(std::string(error.what()) ==
          "/data/lanes: 4 is not a multiple of the 3 ranks\n"
          "  change one of them; another number of lanes changes the data order");
  }
}

TEST_CASE("the time of each loading stage is measured") {
  const Shards shards;
  const auto loader = train_images(shards.dataset, options_of(), {.per_device = 30}, *shards.pool);
  const Batch batch = *loader->next();
  for (const double seconds :
       {batch.stages.read_s, batch.stages.decode_s, batch.stages.augment_s}) {
    CHECK(seconds > 0);
    CHECK(seconds < 60);
  }
}

TEST_CASE("a loader is destroyed quickly in the middle of its work") {
  Shards shards;
  for (int i = 0; i < 50; ++i) {
    const auto loader = train_images(shards.dataset, options_of(3), {0, 1, 7, 1}, *shards.pool);
    if (i % 2 == 0) loader->next();
    if (i % 3 == 0) loader->seek({i, 1});
  }
}

namespace {

class EmptyPool : public core::BufferPool {
 public:
  core::Buffer take(std::size_t /*bytes*/) override { throw std::bad_alloc(); }
};

}  // namespace

TEST_CASE("a pool without memory is reported where the batch is asked for") {
  Shards shards;
  EmptyPool empty;
  const auto loader = train_images(shards.dataset, options_of(2), {0, 1, 7, 1}, empty);
  CHECK_THROWS_AS(loader->next(), std::bad_alloc);
}
