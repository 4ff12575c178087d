#include "lib/train/rules/reproducible.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <array>

#include "lib/core/philox.h"
#include "lib/data/order/order.h"
#include "lib/dist/device.h"

namespace scaletrain::train {

namespace {

// Axes in the order of state.json, which lists context only above 1.
constexpr std::array<core::Axis, core::kAxes> kSaved = {core::Axis::kPipe, core::Axis::kReplica,
                                                        core::Axis::kShard, core::Axis::kTensor,
                                                        core::Axis::kContext};

std::string mesh_text(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (std::size_t place = 0; place < std::min(numbers.size(), core::kAxes); ++place) {
    if (numbers[place] == 1) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : " x ", core::axis_name(kSaved[place]),
                        numbers[place]);
  }
  return text.empty() ? "replicas" : text;
}

}  // namespace

std::vector<std::int64_t> mesh_numbers(const core::MeshPlan& plan) {
  if (plan.size(core::Axis::kReplica) == plan.world_size()) return {};
  std::vector<std::int64_t> numbers;
  for (const core::Axis axis : kSaved) numbers.push_back(plan.size(axis));
  if (plan.size(core::Axis::kContext) == 1) numbers.pop_back();
  return numbers;
}

void describe_process(checkpoint::TrainState& state, const dist::Group& group) {
  state.order_version = data::kOrderVersion;
  state.random_version = core::kRandomVersion;
  state.world_size = group.world_size();
  state.threads = at::get_num_threads();
  state.cpu_capability = at::get_cpu_capability();
  state.torch_version = TORCH_VERSION;
  state.device = dist::device_name(group.device());
  state.exchange = group.exchange();
}

std::vector<std::string> differences(const checkpoint::TrainState& was,
                                     const checkpoint::TrainState& now) {
  std::vector<std::string> result;
  const auto compare = [&](std::string_view what, const auto& before, const auto& after) {
    if (before != after) result.push_back(fmt::format("{} {}, was {}", what, after, before));
  };
  compare("device", was.device, now.device);
  compare("ranks", was.world_size, now.world_size);
  compare("mesh", mesh_text(was.mesh), mesh_text(now.mesh));
  compare("ranks that share experts", was.expert, now.expert);
  compare("threads per rank", was.threads, now.threads);
  compare("CPU capability", was.cpu_capability, now.cpu_capability);
  compare("LibTorch", was.torch_version, now.torch_version);
  compare("data order version", was.order_version, now.order_version);
  compare("version of the random numbers", was.random_version, now.random_version);
  if (was.per_device > 0 && now.per_device > 0) {
    compare("samples per device of the streamed order", was.per_device, now.per_device);
  }
  // Sets are compared only if both were counted, the earlier one too.
  if (was.set_samples > 0 && now.set_samples > 0) {
    compare("samples of the training set", was.set_samples, now.set_samples);
  }
  const auto is_other = [](const std::string& before, const std::string& after) {
    return !before.empty() && !after.empty() && before != after;
  };
  // Two numbers have the same sum in any order.
  if (now.world_size > 2 && is_other(was.exchange, now.exchange)) {
    compare("exchange over", was.exchange, now.exchange);
  }
  if (is_other(was.set_digest, now.set_digest) || is_other(was.index_digest, now.index_digest)) {
    result.emplace_back("the training set holds other samples");
  }
  return result;
}

}  // namespace scaletrain::train
