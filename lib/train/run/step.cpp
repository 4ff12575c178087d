#include "lib/train/run/step.h"

#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <iterator>
#include <limits>
#include <span>
#include <utility>

#include "lib/core/process/planted_delay.h"
#include "lib/core/process/time_ledger.h"
#include "lib/train/rules/vote.h"
#include "lib/units/memory_meter.h"

namespace scaletrain::train {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int kLossSpike = 1, kNormSpike = 2;  // spikes_among()
constexpr double kLeastScale = 1;  // below, the loss scale is not what makes gradients too large

std::optional<StepResult> result_of(std::optional<Outcomes<QueuedStep>::Outcome> outcome,
                                    bool skips_spikes) {
  if (!outcome) return std::nullopt;
  auto& [facts, sizes] = outcome->facts;
  const StepNumbers<std::span<const double>> numbers = unpack(outcome->sums, sizes);
  const auto [loss_sum, vote] = read_votes(numbers.votes);
  StepResult result;
  result.facts = std::move(facts);
  result.has_targets = vote.targets > 0;
  result.loss = vote.targets > 0 ? loss_sum / vote.targets : loss_sum;
  result.grad_norm = numbers.grad_norm.front();
  result.statistics.assign(numbers.statistics.begin(), numbers.statistics.end());
  if (!numbers.loss_scale.empty()) result.loss_scale = numbers.loss_scale.front();
  result.finite = std::isfinite(loss_sum) && std::isfinite(result.grad_norm);
  const auto spikes = numbers.spikes.empty() ? 0 : static_cast<int>(numbers.spikes.front());
  result.loss_spike = (spikes & kLossSpike) != 0;
  result.norm_spike = (spikes & kNormSpike) != 0;
  result.taken = result.finite && !(skips_spikes && spikes != 0);
  result.bounds = vote.bounds;
  result.stop = vote.stop;
  result.digest = vote.digest;
  result.trained_s = vote.trained_s;
  result.skipped = vote.skipped;
  result.save = vote.save;
  result.trace_steps = vote.trace_steps;
  return result;
}

at::Tensor weight_on(at::Device device, at::ScalarType type, double value) {
  return at::full({}, value, at::TensorOptions(type).device(device));
}

}  // namespace

bool StepResult::overflowed() const {
  return !finite && std::isfinite(loss) && loss_scale && *loss_scale >= kLeastScale;
}

// The step's micro-batches, and facts that the host learns from them.
class StepRunner::Batches : public engine::MicroBatches {
 public:
  Batches(StepParts& parts, StepEvidence& evidence, std::int64_t count, bool make_nan,
          StepFacts& facts, Vote& vote)
      : parts_(parts),
        evidence_(evidence),
        count_(count),
        make_nan_(make_nan),
        facts_(facts),
        vote_(vote) {}

  std::int64_t count() const override { return count_; }

  // Reads all of them, for a caller that needs their targets first.
  double read_all() {
    double targets = 0;
    while (static_cast<std::int64_t>(read_.size()) < count()) {
      read_.push_back(read());
      targets += parts_.task.weight_of(read_.back());
    }
    return targets;
  }

  // Makes next() return the same examples again.
  void rewind() { next_ = 0; }

  task::Example next() override {
    if (next_ < kept_.size()) return kept_[next_++];
    task::Example example = make();
    if (!parts_.sam) return example;
    kept_.push_back(example);
    ++next_;
    return example;
  }

 private:
  task::Example make() {
    if (read_.empty()) read_.push_back(read());
    const data::Batch batch = std::move(read_.front());
    read_.pop_front();
    parts_.beat.enter(core::Phase::kCompute);
    const core::TimeScope time(core::TimeRow::kHostToDevice);
    core::delay_if_planted(core::DelayPlace::kCopy);
    task::Example example = parts_.task.prepare(batch, /*training=*/true);
    if (parts_.on_batch) parts_.on_batch(example);
    if (make_nan_ && example.input.is_floating_point()) {
      example.input.fill_(kNan);
    }
    evidence_.add(example);
    return example;
  }

  data::Batch read() {
    parts_.beat.enter(core::Phase::kData);
    const core::TimeScope time(core::TimeRow::kDataWait);
    core::delay_if_planted(core::DelayPlace::kBatch);
    data::Batch batch = *parts_.batches.next();  // training has no end
    facts_.stages += batch.stages;
    evidence_.add(batch);
    if (!parts_.mesh.counts()) return batch;  // another rank has read the same
    vote_.targets += parts_.task.weight_of(batch);
    vote_.digest += batch.digest;
    vote_.skipped += static_cast<std::int64_t>(batch.skipped.size());
    std::move(batch.skipped.begin(), batch.skipped.end(), std::back_inserter(facts_.bad_samples));
    return batch;
  }

  StepParts& parts_;
  StepEvidence& evidence_;
  std::int64_t count_;
  bool make_nan_;
  StepFacts& facts_;
  Vote& vote_;
  std::deque<data::Batch> read_;
  std::vector<task::Example> kept_;  // for a second pass
  std::size_t next_ = 0;             // index into kept_
};

StepRunner::StepRunner(StepParts parts, bool late)
    : parts_(std::move(parts)),
      fault_(read_fault()),
      flips_(parts_.mesh.rank()),
      evidence_(!parts_.anomaly ? 0
                : late          ? 2
                                : 1),
      buffers_(parts_.buffers),
      sizes_(parts_.batch.sizes()),
      weight_type_(c10::promoteTypes(parts_.precision.weights(), at::kFloat)),
      outcomes_(parts_.mesh.world(), late) {
  if (parts_.sam) sam_.emplace(*parts_.sam, parts_.engine.owned());
}

at::Tensor StepRunner::weight(Batches& batches, std::int64_t samples) {
  const std::int64_t fixed = parts_.task.fixed_targets(samples);
  if (fixed > 0) {
    // Uses the job's planned size: a decoupled replica has its share of the global batch.
    const double ranks = parts_.mesh.plan().size(core::kGradientAxes);
    if (std::exchange(weighed_, samples) == samples) return fixed_weight_;
    fixed_weight_ =
        weight_on(parts_.mesh.world().device(), weight_type_, ranks / static_cast<double>(fixed));
    return fixed_weight_;
  }
  const double ranks = parts_.mesh.gradients().world_size();
  dist::Group& data = parts_.mesh.data();
  at::Tensor targets =
      at::full({}, batches.read_all(), at::TensorOptions(at::kDouble).device(data.device()));
  data.all_reduce_sum(targets, "targets").wait();
  // A batch without any target has a loss sum of 0, with any weight.
  return (ranks / targets.masked_fill(targets.eq(0), 1)).to(weight_type_);
}

void StepRunner::run(std::int64_t step, double lr, double trained_s,
                     std::optional<double> weight_decay, bool save, std::int64_t trace_steps,
                     const SpikeBounds& bounds) {
  parts_.beat.begin_step(step + 1);
  const core::TimeScope time(core::TimeRow::kForward);  // the other parts interrupt it
  const bool make_nan = commit_fault(fault_, step + 1, parts_.mesh.rank());
  StepFacts facts{.step = step, .lr = lr, .weight_decay = weight_decay};
  Vote own{.stop = stop_reason(), .trained_s = trained_s, .save = save, .trace_steps = trace_steps};
  if (parts_.anomaly) own.bounds = bounds;
  evidence_.begin(step);
  const double planted = planted_loss_factor(fault_, step + 1, parts_.mesh.rank());
  const std::int64_t bytes_before = communicated_bytes();

  // Data: micro-batches are read when forward needs them, unless the loss weight, 1 / targets of
  // the global batch, needs all of them first. Forward changes buffers; a skipped step restores
  // them.
  const std::int64_t samples = sizes_.of_step(step);
  Batches batches(parts_, evidence_, parts_.batch.micro_steps(samples), make_nan, facts, own);
  buffers_.keep();
  at::Tensor loss_weight = weight(batches, samples);
  if (make_nan) loss_weight = loss_weight * kNan;
  if (planted != 1) loss_weight = loss_weight * planted;

  if (const auto flip = flips_.take(BitFlip::Where::kComm, step + 1)) {
    flip_in_backward(parts_.engine.model().parameters(), *flip);
  }

  // Forward and backward: gradients are communicated while backward runs. The step consensus starts
  // after the last forward, when this rank's loss is known, and hides behind backward too.
  std::optional<VoteExchange> consensus;
  parts_.engine.run(step, batches, loss_weight, [&](at::Tensor loss_sum) {
    if (make_nan) loss_sum = loss_sum * kNan;
    if (planted != 1) loss_sum = loss_sum * planted;
    evidence_.set_loss(loss_sum);
    // Times 0, so that a loss that is not finite stays visible.
    if (!parts_.mesh.counts_losses()) loss_sum = loss_sum * 0;
    consensus.emplace(parts_.mesh.world(), own, loss_sum);
  });

  // Backward does not wait for anything below, so a pending save has had time to copy the tensors
  // that change from here on. SAM replaces the gradients, which takes a second backward.
  parts_.before_update();
  StepNumbers<at::Tensor> numbers{.votes = consensus->sums()};
  const at::Tensor nearby = sam_ ? look_nearby(step, batches, loss_weight) : at::Tensor();

  // Norm and clipping of unscaled gradients. The step is skipped if a loss or norm of any rank is
  // not finite: a tensor has this flag, so that the host does not wait for it.
  const units::MemoryPhase phase(units::MemoryKind::kOptimizer);
  const core::TimeScope update_time(core::TimeRow::kOptimizer);
  core::delay_if_planted(core::DelayPlace::kOptimizer);
  const at::Tensor scale = parts_.precision.loss_scale();
  if (scale.defined()) numbers.loss_scale = scale.to(at::kDouble, false, /*copy=*/true);
  const std::vector<at::Tensor> gradients = parts_.engine.gradients();
  parts_.precision.unscale(gradients);
  flips_.commit(BitFlip::Where::kGradients, step + 1, [&] { return gradients; });
  if (parts_.on_gradients) parts_.on_gradients(step);
  const at::Tensor squares = parts_.engine.squared_norm();
  at::Tensor norm = squares.sqrt();
  if (nearby.defined()) norm = norm + nearby;
  numbers.grad_norm = parts_.replicas.mean_norm(norm, squares);
  parts_.mesh.world().check();  // an aborted collective leaves no valid gradient
  const at::Tensor found_inf = optim::not_finite({loss_among(numbers.votes), numbers.grad_norm});
  at::Tensor left_out = found_inf;
  if (parts_.anomaly) numbers.spikes = spikes_among(numbers.votes, numbers.grad_norm);
  if (skips_spikes()) left_out = at::maximum(found_inf, numbers.spikes.ne(0).to(at::kFloat));
  clip(gradients, norm, numbers.votes);

  // Update, then the outer step of local SGD on the new weights; both before sharded weights are
  // gathered for the next forward, which starts here and hides behind the rest.
  if (weight_decay) parts_.optimizer.set_weight_decay(*weight_decay);
  parts_.optimizer.step(lr, left_out);
  flip_updated(step);
  parts_.replicas.after_step(step);
  parts_.engine.weights_updated();
  numbers.statistics = parts_.engine.end_step(left_out);
  buffers_.put_back_if(left_out);
  update_means(step, left_out);
  parts_.precision.update(found_inf);

  // Logging: one copy brings all numbers to the host, which reads them after the next step.
  facts.exchanged_bytes = communicated_bytes() - bytes_before;
  const StepNumbers<std::int64_t> sizes = sizes_of(numbers);
  outcomes_.push(pack(numbers), {std::move(facts), sizes});
}

void StepRunner::clip(const std::vector<at::Tensor>& gradients, at::Tensor norm,
                      const at::Tensor& votes) {
  if (parts_.anomaly && parts_.anomaly->policy == "clip") {
    const at::Tensor bound = norm_bound_among(votes);
    optim::clip_grad_norm(gradients, norm, bound);
    norm = at::minimum(norm, bound.to(norm.scalar_type()));
  }
  if (parts_.clip) {
    optim::clip(*parts_.clip, parts_.engine.owned(), gradients, norm, parts_.shards);
  }
}

void StepRunner::flip_updated(std::int64_t step) {
  flips_.commit(BitFlip::Where::kWeights, step + 1, [&] {
    parts_.optimizer.settle();
    std::vector<at::Tensor> weights;
    for (const units::NamedParameter& parameter : parts_.engine.owned()) {
      weights.push_back(parameter.tensor);
    }
    return weights;
  });
  flips_.commit(BitFlip::Where::kMoments, step + 1, [&] {
    std::vector<at::Tensor> moments;
    for (const auto& [name, shard] : parts_.optimizer.state()) {
      if (shard.tensor.defined()) moments.push_back(shard.tensor);
    }
    return moments;
  });
}

void StepRunner::update_means(std::int64_t step, const at::Tensor& found_inf) {
  for (optim::Mean* const mean : parts_.means) {
    if (mean->is_due(step)) parts_.optimizer.settle();
    mean->update(step, found_inf);
  }
}

// One rank of a replica learns of another replica's stop; the step consensus makes it known to all
// ranks at the same step.
core::StopReason StepRunner::stop_reason() const {
  const core::StopReason own = core::stop_reason();
  if (own != core::StopReason::kNone || !parts_.replicas.stop_requested()) return own;
  return core::StopReason::kTerminate;
}

at::Tensor StepRunner::look_nearby(std::int64_t step, Batches& batches,
                                   const at::Tensor& loss_weight) {
  parts_.precision.unscale(parts_.engine.gradients());
  sam_->weigh();
  const at::Tensor norm = parts_.engine.squared_norm().sqrt_();
  sam_->ascend(norm);
  parts_.engine.weights_changed();
  batches.rewind();
  parts_.engine.run(
      step, batches, loss_weight, [](const at::Tensor&) {}, /*again=*/true);
  sam_->descend();
  return norm * 0;
}

std::int64_t StepRunner::communicated_bytes() const {
  return parts_.engine.exchanged_bytes() + parts_.replicas.communicated_bytes();
}

std::optional<StepResult> StepRunner::next() { return result_of(outcomes_.next(), skips_spikes()); }

std::optional<StepResult> StepRunner::drain() {
  return result_of(outcomes_.drain(), skips_spikes());
}

Evidence StepRunner::examine(const StepResult& result) {
  const bool looks = !std::isfinite(result.loss) || !std::isfinite(result.grad_norm);
  return evidence_.examine(result.facts.step, looks, parts_.engine, parts_.batches, parts_.buffers);
}

}  // namespace scaletrain::train
