// Any number of classes for each image: a sigmoid for each class, measured by mean average
// precision and by the F1 of the classes that are given more than one half.
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "lib/input/images.h"
#include "lib/input/mix.h"
#include "lib/nn/loss.h"
#include "lib/recipe/recipe.h"
#include "lib/task/average_precision.h"
#include "lib/task/image_sets.h"
#include "lib/task/task.h"

namespace scaletrain::task {
namespace {

// After the common sums come three for each class: the true positives, the samples that have it
// (true), and the samples that are predicted to have it.
constexpr std::size_t kFirstOfClasses = Task::kTargets + 1;

// Returns 2 TP / (2 TP + FP + FN); 0 without true and predicted positives, as in scikit-learn.
double f1_of(double hits, double there, double found) {
  return there + found > 0 ? 2 * hits / (there + found) : 0;
}

class MultiLabelClassification : public Task {
 public:
  MultiLabelClassification(const recipe::TaskRow& row, const recipe::Recipe& recipe,
                           at::Device device)
      : Task(row),
        classes_(recipe.model.num_classes),
        sets_(recipe, classes_, /*multi_label=*/true),
        input_(recipe.data.normalize, recipe.model.in_channels, device,
               input::image_type(recipe.precision)),
        loss_(nn::make_loss(recipe.loss, device)),
        plain_loss_(nn::make_plain_loss(recipe.loss, device)) {
    if (recipe.mix) {
      mixer_.emplace(*recipe.mix, classes_, recipe.seed,
                     recipe::first_unmixed_epoch(*recipe.mix, recipe.length));
    }
  }

  OpenSet open(Split split, const Reader& reader, core::BufferPool& pool) override {
    return sets_.open(split, reader, pool);
  }

  Example prepare(const data::Batch& batch, bool training) const override {
    input::ImageTensors tensors = input_.prepare(batch);
    if (training && mixer_) mixer_->mix(tensors, batch.epoch, batch.position);
    return {.input = std::move(tensors.images), .target = std::move(tensors.targets)};
  }

  std::int64_t independent_classes() const override { return classes_; }

  std::int64_t fixed_targets(std::int64_t samples) const override { return samples; }

  at::Tensor loss_sum(const at::Tensor& output, const Example& example) const override {
    return loss_->sum(output, example.target);
  }

  std::int64_t sum_count() const override {
    return static_cast<std::int64_t>(kFirstOfClasses) + 3 * classes_;
  }

  at::Tensor sums(const at::Tensor& output, const Example& example) const override {
    const at::Tensor found = output.gt(0), there = example.target.gt(0.5);
    const auto doubles = output.options().dtype(at::kDouble);
    const at::Tensor common =
        at::stack({plain_loss_->sum(output, example.target).to(at::kDouble),
                   at::full({}, static_cast<double>(output.size(0)), doubles)});
    const at::Tensor of_classes =
        at::cat({found.bitwise_and(there).sum(0), there.sum(0), found.sum(0)});
    return at::cat({common, of_classes.to(at::kDouble)});
  }

  // Logits, followed by the true classes.
  std::int64_t score_columns() const override { return 2 * classes_; }
  at::Tensor scores(const at::Tensor& output, const Example& example) const override {
    return at::cat({output.to(at::kFloat), example.target}, 1);
  }

  std::vector<recipe::Measured> finish(Split /*split*/, std::span<const double> sums,
                                       const at::Tensor& scores) const override {
    const double count = std::max(sums[kTargets], 1.0);
    const auto classes = static_cast<std::size_t>(classes_);
    const auto of_classes = sums.subspan(kFirstOfClasses);
    double hits = 0, there = 0, found = 0, f1 = 0;
    for (std::size_t i = 0; i < classes; ++i) {
      const double its_hits = of_classes[i], its_there = of_classes[classes + i],
                   its_found = of_classes[2 * classes + i];
      f1 += f1_of(its_hits, its_there, its_found);
      hits += its_hits;
      there += its_there;
      found += its_found;
    }
    return {{row().measure("map"), mean_average_precision(scores.narrow(1, 0, classes_),
                                                          scores.narrow(1, classes_, classes_))},
            {row().measure("micro_f1"), f1_of(hits, there, found)},
            {row().measure("macro_f1"), f1 / static_cast<double>(classes)},
            {row().measure("loss"), sums[kLoss] / count}};
  }

 private:
  std::int64_t classes_;
  ImageSets sets_;
  input::ImageInput input_;
  std::optional<input::Mixer> mixer_;  // nullopt without mixup and CutMix
  std::unique_ptr<nn::Loss> loss_, plain_loss_;
};

}  // namespace

std::unique_ptr<Task> make_multi_label_classification(const recipe::TaskRow& row,
                                                      const recipe::Recipe& recipe,
                                                      at::Device device) {
  return std::make_unique<MultiLabelClassification>(row, recipe, device);
}

}  // namespace scaletrain::task
