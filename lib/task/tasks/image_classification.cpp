// A class for each image: softmax cross-entropy, measured by the share of images whose class is the
// first, or among the first five, of the model's.
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/topk.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "lib/data/loader/image_batch.h"
#include "lib/input/images.h"
#include "lib/input/mix.h"
#include "lib/nn/loss.h"
#include "lib/recipe/recipe.h"
#include "lib/task/image_sets.h"
#include "lib/task/task.h"

namespace scaletrain::task {
namespace {

constexpr std::int64_t kTop = 5;

enum Sum : std::size_t { kTop1 = Task::kTargets + 1, kTop5, kSums };

class ImageClassification : public Task {
 public:
  ImageClassification(const recipe::TaskRow& row, const recipe::Recipe& recipe, at::Device device)
      : Task(row),
        num_classes_(recipe.model.num_classes),
        sets_(recipe, recipe.model.num_classes),
        input_(recipe.data.normalize, recipe.model.in_channels, device,
               input::image_type(recipe.precision)),
        loss_(nn::make_loss(recipe.loss, device)),
        plain_loss_(nn::make_plain_loss(recipe.loss, device)),
        measures_top5_(recipe.model.num_classes > kTop || is_asked_for(recipe, "top5")) {
    if (recipe.mix) {
      mixer_.emplace(*recipe.mix, recipe.model.num_classes, recipe.seed,
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

  std::int64_t exclusive_classes() const override { return num_classes_; }

  double weight_of(const data::Batch& batch) const override {
    return weighs_alike() ? Task::weight_of(batch) : loss_->weight_of(data::labels_of(batch));
  }

  std::int64_t fixed_targets(std::int64_t samples) const override {
    return weighs_alike() ? samples : 0;
  }

  at::Tensor loss_sum(const at::Tensor& output, const Example& example) const override {
    return loss_->sum(output, example.target);
  }

  std::int64_t sum_count() const override { return kSums; }

  at::Tensor sums(const at::Tensor& output, const Example& example) const override {
    const at::Tensor logits = output.scalar_type() == at::kDouble ? output : output.to(at::kFloat);
    const std::int64_t top = std::min(kTop, logits.size(1));
    const at::Tensor best = std::get<1>(logits.topk(top, 1));  // [count, top], best first
    const at::Tensor hits = best.eq(example.target.unsqueeze(1));
    const at::Tensor count =
        at::full({}, example.target.size(0), logits.options().dtype(at::kDouble));
    return at::stack({plain_loss_->sum(output, example.target).to(at::kDouble), count,
                      hits.narrow(1, 0, 1).sum().to(at::kDouble), hits.sum().to(at::kDouble)});
  }

  std::vector<recipe::Measured> finish(Split /*split*/, std::span<const double> sums,
                                       const at::Tensor& /*scores*/) const override {
    const double count = std::max(sums[kTargets], 1.0);
    std::vector<recipe::Measured> found{{row().measure("top1"), sums[kTop1] / count}};
    if (measures_top5_) found.push_back({row().measure("top5"), sums[kTop5] / count});
    found.push_back({row().measure("loss"), sums[kLoss] / count});
    return found;
  }

 private:
  bool weighs_alike() const { return mixer_ || loss_->weighs_alike(); }

  // With this few classes the measure is always 1.
  static bool is_asked_for(const recipe::Recipe& recipe, const std::string& measure) {
    return recipe.checkpoint.best.metric == measure ||
           (recipe.early_stopping && recipe.early_stopping->metric == measure) ||
           (recipe.schedule.plateau && recipe.schedule.plateau->metric == measure);
  }

  std::int64_t num_classes_;
  ImageSets sets_;
  input::ImageInput input_;
  std::optional<input::Mixer> mixer_;  // nullopt without mixup and CutMix
  std::unique_ptr<nn::Loss> loss_, plain_loss_;
  bool measures_top5_;
};

}  // namespace

std::unique_ptr<Task> make_image_classification(const recipe::TaskRow& row,
                                                const recipe::Recipe& recipe, at::Device device) {
  return std::make_unique<ImageClassification>(row, recipe, device);
}

}  // namespace scaletrain::task
