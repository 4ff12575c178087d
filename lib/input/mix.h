// Mixup (Zhang et al., mixup: Beyond Empirical Risk Minimization, 2017) and cutmix (Yun et al.,
// CutMix, 2019) on a batch on its device, by pairs as timm's mode "pair".
//
// The samples at positions 2i and 2i + 1 of an epoch are mixed with each other, with the same share
// for both. The mix depends on the seed, the epoch and i only, so it is equal on any number of
// ranks.
#pragma once

#include <cstdint>
#include <limits>

#include "lib/data/image/view.h"
#include "lib/input/images.h"
#include "lib/recipe/sections/data/mix.h"

namespace scaletrain::input {

struct PairMix {
  double own = 1;  // share of the sample itself, also in its target; the rest is its partner's
  data::Box box;   // cutmix: box taken from the other sample; empty: mixup by `own`
};

// Draws the mix of pair `pair` of `epoch`, for images of size x size.
PairMix draw_pair(const recipe::Mix& mix, std::int64_t size, std::uint64_t seed, std::int64_t epoch,
                  std::int64_t pair);

class Mixer {
 public:
  // Mixes nothing from epoch `end` on.
  Mixer(const recipe::Mix& mix, std::int64_t num_classes, std::uint64_t seed,
        std::int64_t end = std::numeric_limits<std::int64_t>::max())
      : mix_(mix), num_classes_(num_classes), seed_(seed), end_(end) {}

  // Mixes a training batch whose first sample has position `position`; position and count must be
  // even. Targets become class shares, also in epochs that are not mixed.
  void mix(ImageTensors& batch, std::int64_t epoch, std::int64_t position) const;

 private:
  // Converts class numbers to one-hot rows, [count, classes]; returns shares unchanged.
  at::Tensor shares_of(const at::Tensor& targets) const;

  recipe::Mix mix_;
  std::int64_t num_classes_;
  std::uint64_t seed_;
  std::int64_t end_;
};

}  // namespace scaletrain::input
