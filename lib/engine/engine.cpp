#include "lib/engine/engine.h"

#include <ATen/Context.h>
#include <ATen/ops/zeros.h>

#include "lib/core/philox.h"
#include "lib/engine/training_context.h"
#include "lib/optim/norm.h"

namespace scaletrain::engine {
namespace {

constexpr std::uint64_t kMostUnits = 1 << 20;

// What a pass of a micro-batch draws from: (seed, step, block) and nothing before, so that no
// generator state has to be saved.
struct Draws {
  std::uint64_t seed = 0;
  std::int64_t step = 0, block = 0;
};

// Each unit has numbers of its own, so that one that runs again, or on another rank, draws the
// same.
void reseed(at::Device device, const Draws& draws, std::size_t unit) {
  const std::uint64_t place = static_cast<std::uint64_t>(draws.block) * kMostUnits + unit;
  core::Philox draw(draws.seed, core::DrawPurpose::kDropout, static_cast<std::uint64_t>(draws.step),
                    place);
  at::Generator generator = at::globalContext().defaultGenerator(device);
  generator.set_current_seed(draw.next_u64());
}

}  // namespace

Engine::Engine(const EngineParts& parts, std::uint64_t seed)
    : parts_(parts), units_(parts.model.units()), seed_(seed) {}

void Engine::run(std::int64_t step, MicroBatches& batches, const at::Tensor& weight,
                 const std::function<void(const at::Tensor&)>& before_last_backward) {
  const std::int64_t count = batches.count();
  at::Tensor total =
      at::zeros({}, at::TensorOptions(at::kDouble).device(parts_.mesh.world().device()));
  parts_.placement.zero_grad();
  for (std::int64_t micro_step = 0; micro_step < count; ++micro_step) {
    const bool last = micro_step + 1 == count;
    const task::Example example = batches.next();
    parts_.placement.begin_micro_step(last);
    const std::int64_t block = micro_step * parts_.mesh.plan().readers() + parts_.mesh.reader();
    const at::Tensor loss = forward(step, block, example);
    total.add_(loss.detach());
    if (last) before_last_backward(total);
    const at::Tensor root = parts_.precision.scale(loss * weight);
    parts_.placement.prepare_backward(root);
    backward(root);
  }
}

at::Tensor Engine::forward(std::int64_t step, std::int64_t block, const task::Example& example) {
  const Draws draws{.seed = seed_, .step = step, .block = block};
  return parts_.precision.forward([&] {
    const units::Context context = training_context(example.context, parts_.mesh.data());
    const units::Flow output = units::run(units_, {example.input}, context, [&](std::size_t unit) {
      reseed(parts_.mesh.world().device(), draws, unit);
    });
    return parts_.task.loss_sum(output.front(), example);
  });
}

void Engine::backward(const at::Tensor& root) {
  try {
    root.backward();
  } catch (const std::exception&) {
    dist::rethrow_as_stopped(parts_.mesh.world().rank(), "the gradients were");
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

Evaluated Engine::evaluate(const task::Example& example) {
  Evaluated result;
  result.sums = parts_.precision.forward([&] {
    const units::Flow output = units::run(units_, {example.input}, example.context);
    if (parts_.task.score_columns() > 0) {
      result.scores = parts_.task.scores(output.front(), example);
    }
    result.output = output.front();
    return parts_.task.sums(output.front(), example);
  });
  return result;
}

at::Tensor Engine::predict(const task::Example& example) {
  return parts_.precision.forward(
      [&] { return units::run(units_, {example.input}, example.context).front(); });
}

}  // namespace scaletrain::engine
