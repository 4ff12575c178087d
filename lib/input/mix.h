// Mixup (Zhang et al., mixup: Beyond Empirical Risk Minimization, 2017) and cutmix (Yun et al.,
// CutMix, 2019) on a batch on its device, by pairs as timm's mode "pair".
//
// The samples at positions 2i and 2i+1 of an epoch are mixed with each other, each keeping the same
// share of itself. What happens to a pair depends on the seed, the epoch and i alone, so it is the
// same on any number of ranks.
#pragma once

#include <cstdint>
#include <limits>

#include "lib/data/image/view.h"
#include "lib/input/images.h"
#include "lib/recipe/sections/mix.h"

namespace scaletrain::input {

struct PairMix {
  double own = 1;  // a sample's share of itself, in its target too
  data::Box box;   // cutmix: what comes from the other; of size 0: all is averaged by `own`
};

// For pair `pair` of `epoch`, of images of size x size.
PairMix draw_pair(const recipe::Mix& mix, std::int64_t size, std::uint64_t seed, std::int64_t epoch,
                  std::int64_t pair);

class Mixer {
 public:
  // From epoch `end` on nothing is mixed.
  Mixer(const recipe::Mix& mix, std::int64_t num_classes, std::uint64_t seed,
        std::int64_t end = std::numeric_limits<std::int64_t>::max())
      : mix_(mix), num_classes_(num_classes), seed_(seed), end_(end) {}

  // Of a training batch whose first sample stands at `position`; both position and count are even.
  // Its targets become shares of the classes, in every epoch.
  void mix(ImageTensors& batch, std::int64_t epoch, std::int64_t position) const;

 private:
  // One of the class of each sample and zeros, [count, classes]; what are shares already, as they
  // are.
  at::Tensor shares_of(const at::Tensor& targets) const;

  recipe::Mix mix_;
  std::int64_t num_classes_;
  std::uint64_t seed_;
  std::int64_t end_;
};

}  // namespace scaletrain::input
