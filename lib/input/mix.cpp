#include "lib/input/mix.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "lib/core/distributions.h"

namespace scaletrain::input {
namespace {

// Draws a box of 1 - share of the image's area around a random centre, clipped at the edges
// (CutMix, section 3.1).
data::Box draw_box(core::Philox& draws, double share, std::int64_t size) {
  const auto middle = [&] {
    return static_cast<std::int64_t>(draws.below(static_cast<std::uint64_t>(size)));
  };
  const auto half =
      static_cast<std::int64_t>(0.5 * std::sqrt(1 - share) * static_cast<double>(size));
  const auto range = [&](std::int64_t at) {
    const std::int64_t begin = std::max<std::int64_t>(0, at - half);
    return data::Range{begin, std::min(size, at + half) - begin};
  };
  const std::int64_t x = middle(), y = middle();
  return {range(x), range(y)};
}

// Columns of the block that is sent to the device: [pairs, kColumns] in the images' dtype.
enum Column : std::int64_t { kTop, kBottom, kLeft, kRight, kBeside, kOwn, kColumns };

template <class T>
void put_rows(const std::vector<PairMix>& pairs, T* row) {
  for (const PairMix& pair : pairs) {
    const data::Box& box = pair.box;
    row[kTop] = static_cast<T>(box.y.begin);
    row[kBottom] = static_cast<T>(box.y.begin + box.y.size);
    row[kLeft] = static_cast<T>(box.x.begin);
    row[kRight] = static_cast<T>(box.x.begin + box.x.size);
    row[kBeside] = box.x.size * box.y.size > 0 ? T{1} : static_cast<T>(pair.own);
    row[kOwn] = static_cast<T>(pair.own);
    row += kColumns;
  }
}

// Starts the copy to the device of `images`; from pinned memory, so that nothing waits for it.
at::Tensor send(const std::vector<PairMix>& pairs, const at::Tensor& images) {
  const auto count = static_cast<std::int64_t>(pairs.size());
  const at::ScalarType type = images.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor host = at::empty(
      {count, kColumns}, at::TensorOptions(type).pinned_memory(images.device().is_cuda()));
  if (type == at::kDouble) {
    put_rows(pairs, host.mutable_data_ptr<double>());
  } else {
    put_rows(pairs, host.mutable_data_ptr<float>());
  }
  return host.to(images.device(), /*non_blocking=*/true);
}

// True for each of 0..size-1 that lies in the range from column `begin` to column `end`: [pairs,
// size] bool.
at::Tensor inside(const at::Tensor& sent, std::int64_t size, Column begin, Column end) {
  const at::Tensor places = at::arange(size, sent.options());
  return places.ge(sent.narrow(1, begin, 1)).bitwise_and_(places.lt(sent.narrow(1, end, 1)));
}

// Swaps the samples of each pair in [2 * pairs, ...].
at::Tensor partners(const at::Tensor& samples) {
  std::vector<std::int64_t> shape = samples.sizes().vec();
  shape[0] /= 2;
  shape.insert(shape.begin() + 1, 2);
  return samples.view(shape).flip(1).view(samples.sizes());
}

}  // namespace

PairMix draw_pair(const recipe::Mix& mix, std::int64_t size, std::uint64_t seed, std::int64_t epoch,
                  std::int64_t pair) {
  core::Philox draws(seed, core::DrawPurpose::kMix, static_cast<std::uint64_t>(epoch),
                     static_cast<std::uint64_t>(pair));
  if (!core::happens(draws, mix.probability)) return {};
  const double cutmix_share = mix.cutmix <= 0 ? 0 : mix.mixup <= 0 ? 1 : mix.cutmix_share;
  const bool cuts = core::happens(draws, cutmix_share);
  const double alpha = cuts ? mix.cutmix : mix.mixup;
  if (alpha <= 0) return {};
  const double own = core::symmetric_beta(draws, alpha);
  if (!cuts) return {.own = own, .box = {}};
  const data::Box box = draw_box(draws, own, size);
  const auto cut = static_cast<double>(box.x.size * box.y.size);
  return {.own = 1 - cut / static_cast<double>(size * size), .box = box};
}

// at::one_hot would wait for the device to check the targets.
at::Tensor Mixer::shares_of(const at::Tensor& targets) const {
  if (targets.is_floating_point()) return targets;
  return at::zeros({targets.size(0), num_classes_}, targets.options().dtype(at::kFloat))
      .scatter_(1, targets.unsqueeze(1), 1);
}

void Mixer::mix(ImageTensors& batch, std::int64_t epoch, std::int64_t position) const {
  batch.targets = shares_of(batch.targets);
  if (epoch >= end_) return;
  const std::int64_t size = batch.images.size(2);
  std::vector<PairMix> pairs;
  for (std::int64_t i = 0; i < batch.images.size(0); i += 2) {
    pairs.push_back(draw_pair(mix_, size, seed_, epoch, (position + i) / 2));
  }
  const at::Tensor sent = send(pairs, batch.images);
  // A pixel's own share: 0 in a box, 1 outside it, `own` for mixup.
  const at::Tensor in_box =
      inside(sent, size, kTop, kBottom)
          .unsqueeze(2)
          .bitwise_and(inside(sent, size, kLeft, kRight).unsqueeze(1));  // [pairs, height, width]
  const at::Tensor beside = sent.select(1, kBeside);
  const at::Tensor share = beside.view({-1, 1, 1})
                               .expand_as(in_box)
                               .masked_fill(in_box, 0)
                               .repeat_interleave(2, 0)
                               .unsqueeze(3);  // [count, height, width, 1]
  const at::Tensor pixels = batch.images.permute({0, 2, 3, 1});
  batch.images = at::lerp(partners(pixels), pixels, share).permute({0, 3, 1, 2});

  const at::Tensor own = sent.select(1, kOwn).repeat_interleave(2).unsqueeze(1);
  if (own.scalar_type() == at::kDouble) batch.targets = batch.targets.to(at::kDouble);
  batch.targets = at::lerp(partners(batch.targets), batch.targets, own);
}

}  // namespace scaletrain::input
