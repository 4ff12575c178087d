#include "lib/engine/engine.h"

#include <ATen/Context.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/autograd.h>

#include <string>
#include <utility>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/philox.h"
#include "lib/core/process/planted_delay.h"
#include "lib/core/process/time_ledger.h"
#include "lib/engine/chunked_loss.h"
#include "lib/engine/pipeline.h"
#include "lib/engine/recompute.h"
#include "lib/engine/training_context.h"
#include "lib/optim/norm.h"
#include "lib/units/memory_meter.h"

namespace scaletrain::engine {
namespace {

constexpr std::uint64_t kMostUnits = 1 << 20;

using units::MemoryKind;
using units::MemoryPhase;

std::vector<at::Tensor> parameters_of(const units::Unit& unit, nn::Model& model) {
  const auto named = model.named_parameters();
  std::vector<at::Tensor> result;
  for (const std::string& name : unit.tensors) {
    const at::Tensor* const found = named.find(name);
    if (found != nullptr) result.push_back(*found);
  }
  return result;
}

// Returns the model's parameters and buffers.
std::vector<at::Tensor> tensors_of(nn::Model& model) {
  std::vector<at::Tensor> result = model.parameters();
  const std::vector<at::Tensor> buffers = model.buffers();
  result.insert(result.end(), buffers.begin(), buffers.end());
  return result;
}

// Example of the tokens from `first` on, numbered row by row, that `part`, [1, tokens, ...], holds.
task::Example tokens_of(const task::Example& example, const at::Tensor& part, std::int64_t first) {
  return {.input = example.input,
          .target = tokens_in_a_row(example.target).narrow(1, first, part.size(1)),
          .context = example.context};
}

// Number of targets in the loss sum; `ranks` split each sequence into equal numbers of tokens.
at::Tensor targets_of(const task::Task& task, const task::Example& example, int ranks) {
  const std::int64_t fixed = task.fixed_targets(example.input.size(0));
  return fixed > 0 ? at::scalar_tensor(fixed / ranks) : example.target.ge(0).sum();
}

}  // namespace

task::Example next_micro_batch(MicroBatches& batches) {
  const MemoryPhase phase(MemoryKind::kInputs);
  return batches.next();
}

void require_tokens_alone(const units::Unit& last) {
  if (last.takes_tokens_alone) return;
  throw core::RecipeError("/loss/chunk",
                          "the last unit of the model does not process each token by itself",
                          "leave it out; a model whose last unit does so sets takes_tokens_alone");
}

Engine::Engine(const EngineParts& parts, std::uint64_t seed, const MemorySavings& savings)
    : parts_(parts),
      units_(parts.units.empty() ? parts.model.units() : parts.units),
      seed_(seed),
      walk_(parts.placement.hooks(), units_.size()),
      recomputed_(recomputed_units(savings.recompute, units_)),
      chunk_(savings.chunk) {
  if (savings.offload) offload_.emplace(parts.mesh.world().device(), tensors_of(parts.model));
  if (chunk_ == 0) return;
  require_tokens_alone(units_.back());
  last_ = parameters_of(units_.back(), parts.model);
}

// Each unit has random numbers of its own, so that recomputation, or a unit on another rank, draws
// the same.
void Engine::reseed(const Draws& draws, std::size_t unit) {
  if (!units_[unit].draws) return;
  const std::uint64_t place = static_cast<std::uint64_t>(draws.block) * kMostUnits + unit;
  core::Philox draw(draws.seed, core::DrawPurpose::kDropout, static_cast<std::uint64_t>(draws.step),
                    place);
  at::Generator generator = at::globalContext().defaultGenerator(parts_.mesh.world().device());
  generator.set_current_seed(draw.next_u64());
}

void Engine::run(std::int64_t step, MicroBatches& batches, const at::Tensor& weight,
                 const std::function<void(const at::Tensor&)>& before_last_backward, bool again) {
  if (parts_.pipeline != nullptr) {
    return run_pipeline(step, batches, weight, before_last_backward, again);
  }
  const std::int64_t count = batches.count();
  at::Tensor total =
      at::zeros({}, at::TensorOptions(at::kDouble).device(parts_.mesh.world().device()));
  parts_.placement.begin_step(step);
  parts_.placement.zero_grad();
  for (std::int64_t micro_step = 0; micro_step < count; ++micro_step) {
    const bool last = micro_step + 1 == count;
    const task::Example example = next_micro_batch(batches);
    parts_.placement.begin_micro_step(last);
    const std::int64_t block = micro_step * parts_.mesh.plan().readers() + parts_.mesh.reader();
    const Losses losses = forward({.seed = seed_, .step = step, .block = block}, example, again);
    total.add_(losses.task.detach());
    if (last) before_last_backward(total);
    const at::Tensor root = parts_.precision.scale(losses.all * weight);
    parts_.placement.prepare_backward(root);
    const MemoryPhase phase(MemoryKind::kGradients);
    const core::TimeScope time(core::TimeRow::kBackward);
    walk_.begin_backward();
    backward({root}, {});
    walk_.end_backward();
  }
  const core::TimeScope time(core::TimeRow::kBackward);
  parts_.placement.exchange_rest();
}

Engine::Losses Engine::forward(const Draws& draws, const task::Example& example, bool again) {
  Losses losses;
  run_units(0, units_.size(), draws, example, again, {example.input}, &losses);
  return losses;
}

units::Flow Engine::run_units(std::size_t begin, std::size_t end, const Draws& draws,
                              const task::Example& example, bool again, units::Flow flow,
                              Losses* losses) {
  const MemoryPhase phase(MemoryKind::kActivations);
  const core::TimeScope time(core::TimeRow::kForward);
  core::delay_if_planted(core::DelayPlace::kForward);
  parts_.precision.forward([&] {
    const auto context =
        std::make_shared<units::Context>(training_context(example.context, parts_.mesh.data()));
    context->again = again;
    const std::size_t last = units_.size() - 1;
    const bool in_chunks = losses != nullptr && chunk_ > 0;
    const MakeHooks moved = offload_ ? offload_->hooks() : MakeHooks();
    for (std::size_t unit = begin; unit < (in_chunks ? last : end); ++unit) {
      std::optional<SavedTensorsScope> scope;
      if (moved && unit != last) scope.emplace(moved);
      flow = walk_.run(unit, parallel::Pass::kForward,
                       [&] { return run_unit(unit, draws, context, std::move(flow)); });
    }
    if (losses == nullptr) return flow.front();
    if (!in_chunks) {
      losses->task = parts_.task.loss_sum(flow.front(), example);
    } else {
      reseed(draws, last);
      const auto rest = [&] {
        return units::Flow{loss_in_chunks(flow.front(), example, *context)};
      };
      losses->task = walk_.run(last, parallel::Pass::kForward, rest).front();
    }
    losses->all = losses->task;
    for (std::size_t i = 1; i < flow.size(); ++i) {
      const int ranks = parts_.mesh.size(core::Axis::kContext);
      losses->all = losses->all + flow[i] * targets_of(parts_.task, example, ranks);
    }
    return losses->all;
  });
  return flow;
}

units::Flow Engine::run_unit(std::size_t unit, const Draws& draws,
                             const std::shared_ptr<const units::Context>& context,
                             units::Flow input) {
  if (!recomputed_[unit]) {
    reseed(draws, unit);
    return units_[unit].run(std::move(input), *context);
  }
  return run_for_recompute(
      [this, unit, draws, context](units::Flow given, bool again) {
        reseed(draws, unit);
        if (!again) return units_[unit].run(std::move(given), *context);
        units::Context second = *context;
        second.again = true;
        parts_.precision.forward(
            [&] { return units_[unit].run(std::move(given), second).front(); });
        return units::Flow();
      },
      input);
}

at::Tensor Engine::end_step(const at::Tensor& found_inf) {
  parts_.placement.end_step(found_inf);
  const at::NoGradGuard no_grad;
  return parts_.model.end_step(sum_of_step(parts_.mesh));
}

std::vector<UnitCost> Engine::measure_units(const task::Example& example) {
  std::vector<UnitCost> costs(units_.size());
  const at::Device device = parts_.mesh.world().device();
  const auto wait = [device] {
    if (device.is_cpu()) return;
    c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
  };
  SavedBytes saved(tensors_of(parts_.model));
  parts_.precision.forward([&] {
    units::Context context = training_context(example.context, parts_.mesh.data());
    context.again = true;  // skips the updates of counters
    units::Flow flow{example.input};
    for (std::size_t unit = 0; unit < units_.size(); ++unit) {
      UnitCost& cost = costs[unit];
      cost = {.name = units_[unit].name, .input_bytes = bytes_of(flow)};
      const bool in_chunks = chunk_ > 0 && unit + 1 == units_.size();
      if (in_chunks) break;  // a chunk's saved tensors are freed with the chunk
      const units::Flow input = flow;
      const SavedTensorsScope scope(saved.hooks());
      const auto run_twice = [&] {
        for (int run = 0; run < 2; ++run) {  // the first run may choose kernels
          const core::SteadyTime start = core::now();
          flow = units_[unit].run(input, context);
          if (unit + 1 == units_.size()) parts_.task.loss_sum(flow.front(), example);
          wait();
          cost.seconds = core::seconds_since(start);
          cost.saved_bytes = saved.take();
        }
        return flow;
      };
      walk_.run(unit, parallel::Pass::kEvaluation, run_twice);
    }
    return flow.front();
  });
  return costs;
}

at::Tensor Engine::loss_in_chunks(const at::Tensor& hidden, const task::Example& example,
                                  const units::Context& context) {
  return chunked_loss(hidden, last_, chunk_, [&](const at::Tensor& part, std::int64_t first) {
    const units::Flow output = units_.back().run({part}, context);
    return parts_.task.loss_sum(output.front(), tokens_of(example, part, first));
  });
}

at::Tensor Engine::sums_in_chunks(const at::Tensor& hidden, const task::Example& example) {
  at::Tensor sums;
  for_each_chunk(tokens_in_a_row(hidden), chunk_, [&](const at::Tensor& part, std::int64_t first) {
    const units::Flow output = units_.back().run({part}, example.context);
    const at::Tensor own = parts_.task.sums(output.front(), tokens_of(example, part, first));
    sums = sums.defined() ? sums + own : own;
  });
  return sums;
}

void Engine::backward(const units::Flow& roots, const units::Flow& gradients) {
  core::delay_if_planted(core::DelayPlace::kBackward);
  try {
    torch::autograd::backward(roots, gradients);
  } catch (const std::exception&) {
    dist::rethrow_as_stopped(parts_.mesh.rank(), "the gradients were");
  }
}

std::vector<at::Tensor> Engine::gradients() const {
  std::vector<at::Tensor> result;
  result.reserve(owned().size());
  for (const units::NamedParameter& parameter : owned()) {
    if (parameter.tensor.grad().defined()) result.push_back(parameter.tensor.grad());
  }
  return result;
}

at::Tensor Engine::squared_norm() const {
  std::vector<at::Tensor> counted;
  counted.reserve(owned().size());
  for (const units::NamedParameter& parameter : owned()) {
    if (parameter.counts && parameter.tensor.grad().defined()) {
      counted.push_back(parameter.tensor.grad());
    }
  }
  const auto doubles = at::TensorOptions(at::kDouble).device(parts_.mesh.world().device());
  at::Tensor sum = counted.empty() ? at::zeros({}, doubles) : optim::squared_norm(counted);
  parts_.mesh.model().all_reduce_sum(sum, "norm of the gradients").wait();
  return sum;
}

units::Flow Engine::look_through(std::size_t begin, std::size_t end, const task::Example& example,
                                 units::Flow flow) {
  for (std::size_t unit = begin; unit < end; ++unit) {
    flow = walk_.run(unit, parallel::Pass::kEvaluation,
                     [&] { return units_[unit].run(std::move(flow), example.context); });
  }
  return flow;
}

Evaluated Engine::evaluate(const task::Example& example) {
  if (parts_.pipeline == nullptr) return evaluate_from(0, example, {example.input});
  const Stages& stages = parts_.pipeline->stages();
  Evaluated result;
  parts_.pipeline->evaluate(example, [&](int stage, units::Flow input) {
    const std::size_t begin = stages.begin(stage);
    units::Flow flow;
    if (stage + 1 == stages.count()) {
      result = evaluate_from(begin, example, std::move(input));
      return flow;
    }
    parts_.precision.forward([&] {
      flow = look_through(begin, stages.end(stage), example, std::move(input));
      return flow.front();
    });
    return flow;
  });
  return result;
}

Evaluated Engine::evaluate_from(std::size_t begin, const task::Example& example,
                                units::Flow input) {
  Evaluated result;
  result.sums = parts_.precision.forward([&] {
    if (chunk_ > 0) {
      const std::size_t last = units_.size() - 1;
      const units::Flow hidden = look_through(begin, last, example, std::move(input));
      const auto rest = [&] { return units::Flow{sums_in_chunks(hidden.front(), example)}; };
      return walk_.run(last, parallel::Pass::kEvaluation, rest).front();
    }
    const units::Flow output = look_through(begin, units_.size(), example, std::move(input));
    if (parts_.task.score_columns() > 0) {
      result.scores = parts_.task.scores(output.front(), example);
    }
    result.output = output.front();
    return parts_.task.sums(output.front(), example);
  });
  return result;
}

bool Engine::agree(bool goes_on) {
  return parts_.pipeline == nullptr ? goes_on : parts_.pipeline->agree(goes_on);
}

at::Tensor Engine::predict(const task::Example& example) {
  return parts_.precision.forward(
      [&] { return look_through(0, units_.size(), example, {example.input}).front(); });
}

void Engine::accompany() {
  if (parts_.idle_input.defined()) {
    const task::Example idle{.input = parts_.idle_input, .target = parts_.idle_input};
    if (parts_.pipeline != nullptr) return void(evaluate(idle));  // all its stages are idle
    return void(predict(idle));
  }
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    walk_.run(unit, parallel::Pass::kEvaluation, [] { return units::Flow(); });
  }
}

}  // namespace scaletrain::engine
