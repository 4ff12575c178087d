#include "lib/input/mix.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <map>
#include <utility>
#include <vector>

#include "tests/count_reads.h"

namespace {

using namespace scaletrain;
using input::draw_pair;
using input::PairMix;

constexpr std::int64_t kSize = 16, kCount = 8, kClasses = 5;

input::ImageTensors random_batch() {
  at::manual_seed(3);
  return {.images = at::rand({kCount, kSize, kSize, 3}).permute({0, 3, 1, 2}),
          .targets = at::tensor({0, 1, 2, 3, 4, 4, 0, 2}, at::kLong)};
}

}  // namespace

TEST_CASE("a pair is averaged or exchanges a box, and its targets follow") {
  for (const recipe::Mix& mix : {recipe::Mix{.mixup = 0.8}, recipe::Mix{.cutmix = 1.0},
                                 recipe::Mix{.mixup = 0.2, .cutmix = 1.0, .probability = 0.7}}) {
    const input::ImageTensors before = random_batch();
    input::ImageTensors batch = random_batch();
    input::Mixer(mix, kClasses, 9).mix(batch, 2, 40);
    CHECK(batch.images.is_contiguous(at::MemoryFormat::ChannelsLast));
    const at::Tensor one_hot = at::one_hot(before.targets, kClasses).to(at::kFloat);
    for (std::int64_t i = 0; i < kCount; ++i) {
      const std::int64_t other = i ^ 1;
      const PairMix pair = draw_pair(mix, kSize, 9, 2, (40 + i) / 2);
      at::Tensor expected = before.images[i].clone();
      if (pair.box.x.size * pair.box.y.size > 0) {
        const auto box = [&](const at::Tensor& image) {
          return image.narrow(1, pair.box.y.begin, pair.box.y.size)
              .narrow(2, pair.box.x.begin, pair.box.x.size);
        };
        box(expected).copy_(box(before.images[other]));
      } else {
        expected = before.images[i] * pair.own + before.images[other] * (1 - pair.own);
      }
      CHECK(at::allclose(batch.images[i], expected, 0, 1e-6));
      CHECK(at::allclose(batch.targets[i], one_hot[i] * pair.own + one_hot[other] * (1 - pair.own),
                         0, 1e-6));
    }
  }
}

TEST_CASE("images in fp64 are averaged by shares of fp64, and so are their targets") {
  const recipe::Mix mix{.mixup = 0.8};
  input::ImageTensors batch = random_batch();
  batch.images = batch.images.to(at::kDouble);
  const input::ImageTensors before = batch;
  input::Mixer(mix, kClasses, 9).mix(batch, 2, 40);
  CHECK((batch.images.scalar_type() == at::kDouble));
  const at::Tensor one_hot = at::one_hot(before.targets, kClasses).to(at::kDouble);
  for (std::int64_t i = 0; i < kCount; ++i) {
    const std::int64_t other = i ^ 1;
    const double own = draw_pair(mix, kSize, 9, 2, (40 + i) / 2).own;
    const at::Tensor images = before.images[i] * own + before.images[other] * (1 - own);
    const at::Tensor targets = one_hot[i] * own + one_hot[other] * (1 - own);
    CHECK(at::allclose(batch.images[i], images, 0, 1e-15));
    CHECK(at::allclose(batch.targets[i], targets, 0, 1e-15));
  }
}

TEST_CASE("from its end on images are as they came, and targets are shares all the same") {
  const input::Mixer mixer(recipe::Mix{.mixup = 0.8}, kClasses, 9, /*end=*/3);
  const input::ImageTensors before = random_batch();
  for (const std::int64_t epoch : {2, 3, 4}) {
    input::ImageTensors batch = random_batch();
    mixer.mix(batch, epoch, 40);
    CHECK(at::equal(batch.images, before.images) == (epoch >= 3));
    const at::Tensor one_hot = at::one_hot(before.targets, kClasses).to(at::kFloat);
    CHECK(at::equal(batch.targets, one_hot) == (epoch >= 3));
  }
}

TEST_CASE("a pair's draw is that of seed, epoch and pair, and of the recipe's probabilities") {
  const recipe::Mix mix{.mixup = 0.2, .cutmix = 1.0, .probability = 0.8, .cutmix_share = 0.25};
  int still = 0, cut = 0, repeated = 0;
  double own = 0;
  for (std::int64_t pair = 0; pair < 4000; ++pair) {
    const PairMix drawn = draw_pair(mix, 224, 1, 0, pair);
    own += drawn.own / 4000;
    const bool has_box = drawn.box.x.size > 0;
    cut += has_box ? 1 : 0;
    still += drawn.own == 1 && !has_box ? 1 : 0;
    if (has_box) {
      // The share in the targets is that of the pixels that stay.
      CHECK(drawn.own ==
            doctest::Approx(1 - static_cast<double>(drawn.box.x.size * drawn.box.y.size) /
                                    (224.0 * 224.0)));
      CHECK(drawn.box.x.begin >= 0);
      CHECK(drawn.box.x.begin + drawn.box.x.size <= 224);
    }
    repeated += drawn.own == draw_pair(mix, 224, 1, 1, pair).own && drawn.own != 1 ? 1 : 0;
    CHECK(drawn.own == draw_pair(mix, 224, 1, 0, pair).own);
  }
  CHECK(std::abs(cut - 800) < 120);    // 4000 * 0.8 * 0.25; small boxes vanish at times
  CHECK(std::abs(still - 800) < 150);  // 4000 * 0.2, and mixup's draws so near to 1
  CHECK(repeated < 20);
  CHECK(own < 0.75);
}

// The variance of Beta(a, a) is 1 / (4 (2 a + 1)).
TEST_CASE("what is averaged keeps a share of mixup's distribution, what is cut one of cutmix's") {
  const recipe::Mix mix{.mixup = 0.2, .cutmix = 1.0, .cutmix_share = 0.5};
  double averaged = 0, averaged_squares = 0, cut = 0, cut_sum = 0;
  for (std::int64_t pair = 0; pair < 4000; ++pair) {
    const PairMix drawn = draw_pair(mix, 1000, 1, 0, pair);
    if (drawn.box.x.size == 0) {
      ++averaged;
      averaged_squares += (drawn.own - 0.5) * (drawn.own - 0.5);
    } else if (drawn.box.x.begin > 0 && drawn.box.x.begin + drawn.box.x.size < 1000 &&
               drawn.box.y.begin > 0 && drawn.box.y.begin + drawn.box.y.size < 1000) {
      ++cut;
      cut_sum += drawn.own > 0.75 ? 1 : 0;
    }
  }
  CHECK(averaged_squares / averaged == doctest::Approx(1 / (4 * 1.4)).epsilon(0.1));
  // A box of the share s fits in with the probability (1 - sqrt(s))^2, so that of those that are
  // whole and of an even s the part below 1/4 is (1/4 - 4/3 / 8 + 1/32) / (1 - 4/3 + 1/2).
  CHECK(cut_sum / cut == doctest::Approx(11.0 / 16).epsilon(0.1));
}

// With 4 pixels a box has half a side of 1 or none: it reaches from one before its middle to that.
TEST_CASE("a box lies about a middle that is anywhere in the image, cut at the edge") {
  std::map<std::pair<std::int64_t, std::int64_t>, int> beside, below;  // by begin and size
  for (std::int64_t pair = 0; pair < 4000; ++pair) {
    const data::Box box = draw_pair({.cutmix = 1.0}, 4, 1, 0, pair).box;
    if (box.x.size == 0) continue;
    ++beside[{box.x.begin, box.x.size}];
    ++below[{box.y.begin, box.y.size}];
  }
  for (const auto& ranges : {beside, below}) {
    REQUIRE(ranges.size() == 4);
    for (const auto& range : std::vector<std::pair<int, int>>{{0, 1}, {0, 2}, {1, 2}, {2, 2}}) {
      CHECK(ranges.at(range) > 600);  // 3000 of the shares up to 3/4, 750 each
    }
  }
}

TEST_CASE("without probability nothing is mixed, and targets are plain shares") {
  const input::ImageTensors before = random_batch();
  input::ImageTensors batch = random_batch();
  input::Mixer({.mixup = 1, .probability = 0}, kClasses, 9).mix(batch, 0, 0);
  CHECK(at::equal(batch.images, before.images));
  CHECK(at::equal(batch.targets, at::one_hot(before.targets, kClasses).to(at::kFloat)));
}

TEST_CASE("targets with any number of classes are mixed as they are") {
  const input::Mixer mixer({.mixup = 0.2, .cutmix = 1.0}, kClasses, 9);
  input::ImageTensors numbers = random_batch(), shares = random_batch();
  shares.targets = at::one_hot(shares.targets, kClasses).to(at::kFloat);
  mixer.mix(numbers, 2, 40);
  mixer.mix(shares, 2, 40);
  CHECK(at::equal(shares.targets, numbers.targets));
}

TEST_CASE("mixing reads no value of a batch") {
  input::ImageTensors batch = random_batch();
  const input::Mixer mixer({.mixup = 0.2, .cutmix = 1.0}, kClasses, 9);
  CHECK(testing::count_reads([&] { mixer.mix(batch, 2, 40); }) == 0);
}

TEST_CASE("a device is sent one block for a batch") {
  input::ImageTensors batch = random_batch();
  const input::Mixer mixer({.mixup = 0.2, .cutmix = 1.0}, kClasses, 9);
  // The block, and one within an operator of LibTorch's.
  CHECK(testing::count_calls("aten::to", [&] { mixer.mix(batch, 2, 40); }) == 2);
}
