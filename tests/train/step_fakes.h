// What a step is given, of one weight, and that notes what the step does with it.
#pragma once

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/parallel/data_parallel.h"
#include "lib/recipe/catalog/lists.h"
#include "lib/train/run/step.h"

namespace scaletrain::train {

// Called with what a part of the step does, and the value that it does that with.
using Note = std::function<void(const char*, const at::Tensor&)>;

// Replicas that all-reduce gradients in each step.
inline local_sgd::Replicas& synchronous() {
  static local_sgd::Replicas replicas;
  return replicas;
}

inline recipe::Clip to_norm(double limit) { return {.norm = limit, .value = {}, .adaptive = {}}; }

// Batch number n of reader r holds the numbers 10 r + n and 10 r + n + 1; targets by the task
// below.
class Counting : public data::BatchStream {
 public:
  Counting(int reader, bool vary, Note note)
      : number_(10 * reader), vary_(vary), note_(std::move(note)) {}

  std::optional<data::Batch> next() override {
    note_("read", {});
    data::Batch batch;
    batch.columns = data::Columns({{data::Element::kInt64, 1}}, 2, *pool_);
    const auto values = batch.columns.values<std::int64_t>(0);
    values[0] = number_;
    values[1] = number_ + 1;
    batch.count = 2;
    batch.targets = vary_ ? 2 + number_ % 2 : 2;
    batch.digest = static_cast<std::uint64_t>(1) << 40;
    batch.stages.decode_s = 3;
    if (number_ % 10 == 3) batch.skipped.emplace_back();
    ++number_;
    return batch;
  }
  void seek(data::Position /*position*/) override {}
  std::int64_t steps_per_epoch() const override { return 1000; }

 private:
  std::unique_ptr<core::BufferPool> pool_ = core::make_host_pool();
  std::int64_t number_;
  bool vary_;  // their targets
  Note note_;
};

// Its loss is w times the sum of the batch's numbers; squared: w^2 / 2 times that of their squares.
class Weighted : public task::Task {
 public:
  // A target weighs `weight` where they are counted.
  Weighted(std::int64_t fixed, double weight, at::ScalarType type, Note note, bool squared = false)
      : Task(recipe::tasks().front()),
        fixed_(fixed),
        weight_(weight),
        type_(type),
        note_(std::move(note)),
        squared_(squared) {}

  task::OpenSet open(task::Split, const task::Reader&, core::BufferPool&) override { return {}; }
  task::Example prepare(const data::Batch& batch, bool /*training*/) const override {
    note_("prepare", {});
    const auto values = batch.columns.values<std::int64_t>(0);
    return {.input = at::tensor(std::vector<float>(values.begin(), values.end())).to(type_),
            .target = {}};
  }
  double weight_of(const data::Batch& batch) const override {
    return weight_ * static_cast<double>(batch.targets);
  }
  std::int64_t fixed_targets(std::int64_t samples) const override { return fixed_ * samples; }
  at::Tensor loss_sum(const at::Tensor& output, const task::Example&) const override {
    return squared_ ? output.square().sum() / 2 : output.sum();
  }
  std::int64_t sum_count() const override { return 2; }
  at::Tensor sums(const at::Tensor& output, const task::Example&) const override { return output; }
  std::vector<recipe::Measured> finish(task::Split, std::span<const double>,
                                       const at::Tensor&) const override {
    return {};
  }

 private:
  std::int64_t fixed_;
  double weight_;
  at::ScalarType type_;  // of the model's input
  Note note_;
  bool squared_;
};

// Multiplies by the sum of its weights. `part` stands for what this rank has of the model; its
// gradients are so many times as large.
class Line : public nn::Model {
 public:
  Line(double part, Note note, const std::vector<float>& weights = {1})
      : part_(part),
        note_(std::move(note)),
        weight_(register_parameter("weight", at::tensor(weights))) {
    register_buffer("seen", at::zeros({1}));
  }
  std::vector<units::Unit> units() override {
    return {
        unit("line", {""}, [this](units::Flow flow, const units::Context& context) -> units::Flow {
          const at::Tensor sum = flow[0].sum();
          note_(context.again ? "forward again" : "forward", sum);
          if (!context.again) named_buffers()["seen"].add_(sum);
          return {flow[0] * weight_.sum() * part_};
        })};
  }

 private:
  double part_;
  Note note_;
  at::Tensor weight_;
};

// Losses are scaled by 4, which is exact.
class Scaled : public precision::Precision {
 public:
  explicit Scaled(Note note) : note_(std::move(note)) {}
  at::Tensor forward(const std::function<at::Tensor()>& body) override { return body(); }
  at::Tensor scale(const at::Tensor& loss) override { return loss * 4; }
  void unscale(const std::vector<at::Tensor>& gradients) override {
    for (const at::Tensor& gradient : gradients) gradient.div_(4);
  }
  void update(const at::Tensor& found_inf) override { note_("scaler", found_inf); }

 private:
  Note note_;
};

// Remembers the sum of the gradients that it was given; changes nothing.
class Remembers : public optim::Optimizer {
 public:
  Remembers(at::Tensor parameter, Note note)
      : parameter_(std::move(parameter)), note_(std::move(note)) {}
  void step(double lr, const std::optional<at::Tensor>& found_inf) override {
    note_("update", {});
    if (found_inf->item<double>() != 0) return;
    said += fmt::format("lr {} gradient {:g};", lr, parameter_.grad().sum().item<double>());
  }
  void set_weight_decay(double weight_decay) override {
    said += fmt::format("decay {} ", weight_decay);
  }
  void settle() override { note_("settle", {}); }
  units::Shards state() override { return {}; }

  std::string said;

 private:
  at::Tensor parameter_;
  Note note_;
};

// Notes that the weights have changed, and where they must be there.
class Noted : public parallel::DataParallel {
 public:
  Noted(std::vector<units::NamedParameter> parameters, const dist::Mesh& mesh, Note note)
      : DataParallel(std::move(parameters), mesh), note_(std::move(note)) {}
  void spread_ahead() override { note_("new weights", {}); }
  void settle() override { note_("weights there", {}); }

 private:
  Note note_;
};

}  // namespace scaletrain::train
