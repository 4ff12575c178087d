#include "lib/train/loop/pictures.h"

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/where.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <tuple>
#include <utility>

#include "lib/data/image/encode.h"
#include "lib/data/set/sample_set.h"

namespace scaletrain::train {
namespace {

constexpr std::int64_t kMostImages = 16, kColumns = 4;
constexpr std::int64_t kMostPixels = 128;  // height and width of an image of a grid
constexpr std::int64_t kGap = 2;           // pixels between images
constexpr double kLeastShare = 0.01;       // of a class that a caption names

at::Tensor scaled_down(const at::Tensor& images) {
  const std::int64_t height = images.size(2), width = images.size(3);
  const std::int64_t longest = std::max(height, width);
  if (longest <= kMostPixels) return images;
  const auto scaled = [&](std::int64_t side) {
    return std::max<std::int64_t>(1, side * kMostPixels / longest);
  };
  return at::adaptive_avg_pool2d(images, {scaled(height), scaled(width)});
}

// 8-bit RGB, [count, height, width, 3] on the host.
at::Tensor pixels_of(const at::Tensor& images, const recipe::Normalize& normalize) {
  const std::int64_t channels = images.size(1);
  const recipe::Normalize by_channel = recipe::for_channels(normalize, channels);
  const auto column = [&](const std::vector<double>& values) {
    return at::tensor(values, at::kFloat).narrow(0, 0, channels).reshape({1, channels, 1, 1});
  };
  at::Tensor values = scaled_down(images.detach().to(at::kCPU, at::kFloat));
  values = values * column(by_channel.std) + column(by_channel.mean);
  values = values.nan_to_num(0).clamp(0, 1).mul(255).round().to(at::kByte);
  return values.permute({0, 2, 3, 1}).expand({-1, -1, -1, data::kChannels}).contiguous();
}

}  // namespace

data::Image picture_grid(const at::Tensor& images, const recipe::Normalize& normalize,
                         std::int64_t columns) {
  const at::Tensor pixels = pixels_of(images, normalize);
  const std::int64_t count = pixels.size(0), height = pixels.size(1), width = pixels.size(2);
  const std::int64_t rows = (count + columns - 1) / columns;
  data::Image grid;
  grid.reshape(columns * (width + kGap) - kGap, rows * (height + kGap) - kGap);
  std::fill(grid.pixels.begin(), grid.pixels.end(), std::uint8_t{255});
  const auto* source = pixels.const_data_ptr<std::uint8_t>();
  const std::int64_t row_bytes = width * data::kChannels;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t top = i / columns * (height + kGap), left = i % columns * (width + kGap);
    for (std::int64_t y = 0; y < height; ++y, source += row_bytes) {
      std::memcpy(grid.row(top + y) + left * data::kChannels, source,
                  static_cast<std::size_t>(row_bytes));
    }
  }
  return grid;
}

Pictures::Pictures(const Run& run, const core::WorkerEnv& env)
    : run_(run),
      writes_(env.rank == 0 && run.recipe.log.writes_images() &&
              run.task->row().reads == recipe::TaskRow::Reads::kImages),
      writes_mistakes_(writes_ && run.task->exclusive_classes() > 0 &&
                       run.mesh->size(core::Axis::kPipe) == 1 &&
                       run.mesh->size(core::Axis::kTensor) == 1),
      wants_batch_(writes_ && run.state.step == 0),
      media_(run.recipe.output, env.attempt, run.housekeeping) {}

void Pictures::batch(const task::Example& example) {
  if (!std::exchange(wants_batch_, false)) return;
  try {
    write_batch(example);
  } catch (const c10::Error& error) {
    give_up(error);
  }
}

void Pictures::write_batch(const task::Example& example) {
  const std::int64_t count = std::min(example.input.size(0), kMostImages);
  const std::int64_t columns = std::min(count, kColumns);
  write({.name = "train/batch",
         .step = 1,
         .columns = columns,
         .captions = captions_of(example.target.slice(0, 0, count))},
        example.input.slice(0, 0, count));
}

Watcher Pictures::watcher() {
  mistakes_ = {};
  if (!writes_mistakes_) return {};
  return [this](const data::Batch&, const task::Example& example, const at::Tensor& output) {
    if (!output.defined() || !writes_mistakes_) return;
    try {
      add(example, output);
    } catch (const c10::Error& error) {  // no memory for the copies
      give_up(error);
    }
  };
}

void Pictures::add(const task::Example& example, const at::Tensor& output) {
  const at::NoGradGuard no_grad;
  const auto [confidence, predicted] = at::softmax(output.to(at::kFloat), 1).max(1);
  const at::Tensor is_wrong = predicted.ne(example.target);
  const at::Tensor ranked = at::where(is_wrong, confidence, at::full_like(confidence, -1));
  const auto best_of = [](const Mistakes& all) {
    const std::int64_t count = std::min(all.confidence.size(0), kMostImages);
    const auto [values, places] = at::topk(all.confidence, count);
    return Mistakes{.confidence = values,
                    .images = all.images.index_select(0, places),
                    .labels = all.labels.index_select(0, places),
                    .predicted = all.predicted.index_select(0, places)};
  };
  const Mistakes own = best_of({.confidence = ranked,
                                .images = example.input,
                                .labels = example.target,
                                .predicted = predicted});
  if (!mistakes_.images.defined()) {
    mistakes_ = own;
    return;
  }
  mistakes_ = best_of({.confidence = at::cat({mistakes_.confidence, own.confidence}),
                       .images = at::cat({mistakes_.images, own.images}),
                       .labels = at::cat({mistakes_.labels, own.labels}),
                       .predicted = at::cat({mistakes_.predicted, own.predicted})});
}

void Pictures::write_mistakes(const std::string& split, std::int64_t step) {
  const Mistakes mistakes = std::exchange(mistakes_, {});
  if (!mistakes.images.defined()) return;
  try {
    write(mistakes, split, step);
  } catch (const c10::Error& error) {
    give_up(error);
  }
}

void Pictures::write(const Mistakes& mistakes, const std::string& split, std::int64_t step) {
  const at::Tensor confidence = mistakes.confidence.to(at::kCPU);
  const at::Tensor labels = mistakes.labels.to(at::kCPU);
  const at::Tensor predicted = mistakes.predicted.to(at::kCPU);
  const std::int64_t count = confidence.ge(0).sum().item<std::int64_t>();  // the others are right
  if (count == 0) return;
  std::vector<std::string> captions;
  for (std::int64_t i = 0; i < count; ++i) {
    captions.push_back(fmt::format(
        "{}, predicted {} ({:.0f} %)", class_name(labels[i].item<std::int64_t>()),
        class_name(predicted[i].item<std::int64_t>()), 100 * confidence[i].item<double>()));
  }
  write({.name = split + "/worst",
         .step = step,
         .columns = std::min(count, kColumns),
         .captions = std::move(captions)},
        mistakes.images.slice(0, 0, count));
}

std::string Pictures::class_name(std::int64_t number) const {
  const std::vector<std::string>& names = run_.sets.train.set->classes();
  const bool has_name = number >= 0 && number < static_cast<std::int64_t>(names.size());
  return has_name ? names[static_cast<std::size_t>(number)] : std::to_string(number);
}

// Targets are class numbers [count], or shares of the classes [count, classes].
std::vector<std::string> Pictures::captions_of(const at::Tensor& targets) const {
  const at::Tensor host = targets.to(at::kCPU);
  std::vector<std::string> captions;
  for (std::int64_t i = 0; i < host.size(0); ++i) {
    std::string caption;
    if (host.dim() == 1) caption = class_name(host[i].item<std::int64_t>());
    for (std::int64_t one = 0; host.dim() == 2 && one < host.size(1); ++one) {
      const auto share = host[i][one].item<double>();
      if (share < kLeastShare) continue;
      caption += (caption.empty() ? "" : " + ") + class_name(one);
      if (share < 1 - kLeastShare) caption += fmt::format(" {:.2f}", share);
    }
    captions.push_back(std::move(caption));
  }
  return captions;
}

void Pictures::give_up(const c10::Error& error) {
  writes_mistakes_ = wants_batch_ = false;
  mistakes_ = {};
  run_.housekeeping->failed("/log/images", error.what_without_backtrace(),
                            "the run goes on without pictures");
}

void Pictures::write(observe::PictureRecord record, const at::Tensor& images) {
  const data::Image grid = picture_grid(images, run_.recipe.data.normalize, record.columns);
  media_.write(record, data::to_png(grid));
}

}  // namespace scaletrain::train
