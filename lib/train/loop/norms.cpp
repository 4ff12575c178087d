#include "lib/train/loop/norms.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "lib/optim/norm.h"
#include "lib/units/host_update.h"
#include "lib/units/widened.h"

namespace scaletrain::train {

NormWriter::NormWriter(const Run& run, const core::WorkerEnv& env, Reporter& reporter)
    : run_(run), reporter_(reporter), writes_(env.rank == 0) {
  const bool is_with_rank_0 = run.mesh->plan().model_group(run.mesh->rank()).front() == 0;
  if (!is_with_rank_0 || !run.recipe.log.histograms) return;
  every_.emplace(*run.recipe.log.histograms, run.length);
  for (const units::Unit& unit : run.engine->units()) {
    units_.push_back(unit.name);
    // A tied tensor belongs to the first unit that has it.
    for (const std::string& name : unit.tensors) unit_of_.emplace(name, std::ssize(units_) - 1);
  }
}

void NormWriter::look(std::int64_t step) {
  if (!every_ || !every_->due(step + 1, 0, 0)) return;
  step_ = step + 1;
  squares_ = at::zeros({std::ssize(units_), kColumns}, at::kDouble);
  try_alone([this] {
    for (const units::NamedParameter& parameter : run_.engine->owned()) {
      if (!parameter.counts) continue;
      if (parameter.on_host) parameter.on_host->wait();
      before_.push_back(parameter.tensor.detach().clone());
      add(parameter.name, kWeight, before_.back());
      const at::Tensor gradient = parameter.tensor.grad();
      if (gradient.defined()) add(parameter.name, kGradient, gradient);
    }
  });
}

void NormWriter::updated() {
  if (!step_) return;
  try_alone([this] {
    auto before = before_.begin();
    for (const units::NamedParameter& parameter : run_.engine->owned()) {
      if (!parameter.counts) continue;
      if (parameter.on_host) parameter.on_host->wait();
      add(parameter.name, kUpdate,
          units::widened(parameter.tensor.detach()) - units::widened(*before++));
    }
  });
  before_.clear();
  // The last row has the number of ranks that failed.
  at::Tensor sums = at::full({std::ssize(units_) + 1, kColumns}, failure_.empty() ? 0 : 1,
                             at::TensorOptions(at::kDouble));
  sums.narrow(0, 0, std::ssize(units_)).copy_(squares_);
  sums = sums.to(run_.mesh->model().device());
  run_.mesh->model().all_reduce_sum(sums, "norms of the units").wait();
  sums = run_.mesh->model().to_host(sums);
  if (writes_) write(sums);
  step_.reset();
  failure_.clear();
}

void NormWriter::add(const std::string& name, Column column, const at::Tensor& values) {
  const auto unit = unit_of_.find(name);
  if (unit == unit_of_.end()) return;
  squares_[unit->second][column].add_(optim::squared_norm({values}).to(at::kCPU));
}

void NormWriter::try_alone(const std::function<void()>& work) {
  if (!failure_.empty()) return;
  const at::NoGradGuard no_grad;
  try {
    work();
  } catch (const c10::Error& error) {
    failure_ = error.what_without_backtrace();
  }
}

void NormWriter::write(const at::Tensor& sums) {
  const auto* const cells = sums.const_data_ptr<double>();
  const auto norm = [&](std::size_t unit, Column column) {
    return std::sqrt(cells[static_cast<std::int64_t>(unit) * kColumns + column]);
  };
  if (norm(units_.size(), kWeight) > 0) {
    run_.housekeeping->failed(
        "/log/histograms", failure_.empty() ? "another rank could not copy its weights" : failure_,
        "the run goes on without the norms of that step");
    return;
  }
  observe::NormsRecord record{.step = *step_};
  for (std::size_t i = 0; i < units_.size(); ++i) {
    record.units.push_back({.unit = units_[i],
                            .weight = norm(i, kWeight),
                            .gradient = norm(i, kGradient),
                            .update = norm(i, kUpdate)});
  }
  reporter_.norms(std::move(record));
}

}  // namespace scaletrain::train
