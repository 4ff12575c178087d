#include "lib/train/loop/model_flops.h"

#include <array>
#include <utility>

#include "lib/data/loader/image_sizes.h"
#include "lib/dist/device.h"
#include "lib/dist/send.h"

namespace scaletrain::train {

ModelFlops::ModelFlops(const Run& run)
    : run_(run),
      sizes_(run.batch.sizes()),
      peak_(
          observe::device_peak(dist::device_name(run.group->device()), run.recipe.precision.name)),
      sums_(*run.group) {}

ModelFlops::Size ModelFlops::size_of(std::int64_t step) const {
  const recipe::Data& data = run_.recipe.data;
  const std::int64_t image_size =
      data::plan_image_sizes(data.image_size, data.resize_ramp, run_.length.steps_per_epoch)
          .at(run_.length.place(step));
  return {sizes_.of_step(step), image_size};
}

void ModelFlops::begin(std::int64_t step) {
  if (std::exchange(is_first_, false)) return;
  size_ = size_of(step);
  if (known_.contains(size_)) return;
  counter_.emplace(units::FlopCounter::Threads::kAll);
  counted_ = step;
}

void ModelFlops::end() {
  if (!counter_) return;
  const units::PassFlops own = counter_->count();
  counter_.reset();
  const std::array<double, 2> flops{own.forward.counted() + own.backward.counted(),
                                    own.recomputed.counted()};
  const at::Tensor sums = dist::send(flops, run_.group->device());
  run_.group->all_reduce_sum(sums, "FLOPs of a step").wait();
  known_.emplace(size_, std::nullopt);
  sums_.push(sums, size_);
}

void ModelFlops::add(std::int64_t step, double seconds) {
  // Not before the step's result is known: on a device that would wait for it.
  while (step >= counted_) {
    const auto read = sums_.drain();
    if (!read) break;
    known_[read->facts] = StepFlops{.model = read->sums[0], .recomputed = read->sums[1]};
  }
  const auto found = known_.find(size_of(step));
  if (found == known_.end() || !found->second) return;
  for (Window* const one : {&window_, &total_}) {
    one->flops += found->second->model;
    one->seconds += seconds;
    one->last = *found->second;
  }
}

std::optional<observe::ModelSpeed> ModelFlops::take_window() {
  return speed_of(std::exchange(window_, {}));
}

std::optional<observe::ModelSpeed> ModelFlops::speed_of(const Window& window) const {
  constexpr double kTera = 1e12;
  if (window.seconds <= 0 || window.flops <= 0) return std::nullopt;
  const double of_device = window.flops / window.seconds / run_.group->world_size();
  observe::ModelSpeed speed{.step_flops = window.last.model,
                            .recomputed_flops = window.last.recomputed,
                            .tflops_per_s = of_device / kTera};
  if (peak_.flops_per_s > 0) speed.mfu = of_device / peak_.flops_per_s;
  return speed;
}

}  // namespace scaletrain::train
