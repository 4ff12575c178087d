#include "lib/input/mix.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

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
