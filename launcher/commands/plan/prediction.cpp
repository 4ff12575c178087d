#include "launcher/commands/plan/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "launcher/commands/explain/layout_rows.h"
#include "launcher/commands/plan/data_size.h"
#include "launcher/place/batch_check.h"
#include "lib/core/process/cores.h"
#include "lib/observe/device_kinds.h"
#include "lib/recipe/ranks.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kGiga = 1e9, kSecondsOfHour = 3600;

// Limits and speeds of the device that is planned for.
struct Machine {
  DeviceSpeed speed{};
  double memory_bytes = 0;
  double watts = 0;
  std::optional<double> peak_flops{};
  std::vector<std::string> notes{};
};

double number_at(const Json& json, const char* name) { return json.value(name, 0.0); }

// This machine; its ranks share the memory.
Machine this_machine(const PlanTarget& target, const Json& layout) {
  // Share of the speed of large matrix products that a step reaches; --probe measures it.
  constexpr double kEfficiency = 0.5;
  constexpr LinkSpeed kShm{.latency_s = 50e-6, .bytes_per_s = 2e9};
  Machine machine{.memory_bytes = machine_memory_bytes() / target.nproc};
  if (const auto found = layout.find("machine"); found != layout.end()) {
    machine.speed.flops_per_s = kEfficiency * number_at(*found, "flops_per_s");
    machine.speed.memory_bytes_per_s = number_at(*found, "bytes_per_s");
  }
  machine.speed.inside = kShm;
  machine.notes.emplace_back(
      "step time: half of the speed of matrix products on this machine; --probe measures it");
  return machine;
}

Machine machine_of(const recipe::Recipe& recipe, const PlanTarget& target, const Json& layout) {
  constexpr double kInsideLatency = 10e-6, kBetweenLatency = 20e-6;
  constexpr double kUsualEfficiency = 0.4;
  Machine machine;
  if (target.is_cpu()) {
    machine = this_machine(target, layout);
  } else {
    const observe::DeviceKind& device = observe::device_kind(target.device);
    machine.memory_bytes = device.memory_gb * kGiga;
    machine.watts = device.watts;
    machine.peak_flops = device.peak_flops(recipe.precision.name);
    const double efficiency = device.efficiency > 0 ? device.efficiency : kUsualEfficiency;
    machine.speed.flops_per_s = machine.peak_flops.value_or(0) * efficiency;
    machine.speed.memory_bytes_per_s = device.memory_gb_s * kGiga;
    machine.speed.inside = {.latency_s = kInsideLatency, .bytes_per_s = device.link_gb_s * kGiga};
    machine.notes.push_back(
        device.efficiency > 0
            ? fmt::format("step time: {:.0f} % of the peak, as {}", 100 * efficiency,
                          device.efficiency_source)
            : fmt::format("step time: {:.0f} % of the peak is assumed", 100 * efficiency));
    if (!machine.peak_flops) {
      machine.notes.push_back(fmt::format("step time: precision \"{}\" has no peak in the table",
                                          recipe.precision.name));
    }
  }
  machine.speed.between = {.latency_s = kBetweenLatency,
                           .bytes_per_s = target.network_gb_s * kGiga};
  return machine;
}

// True if bytes of `kind` are in the host's memory or in a file.
bool is_offloaded(const std::string& kind, const recipe::Recipe& recipe, const PlanTarget& target) {
  if (target.is_cpu() || !recipe.offload) return false;
  return (kind == "parameters" && recipe.offload->parameters) ||
         (kind == "optimizer" && recipe.offload->optimizer);
}

std::vector<MemoryShare> shares_of(const Json& rank, const recipe::Recipe& recipe,
                                   const PlanTarget& target) {
  std::vector<MemoryShare> shares;
  for (const auto& [kind, value] : rank.at("bytes").items()) {
    double bytes = value.get<double>();
    if (bytes == 0 || is_offloaded(kind, recipe, target)) continue;
    if (kind == "activations" && recipe.offload && recipe.offload->activations) {
      // Only the activations of the running unit and of the one being copied stay on the device.
      bytes = std::min(bytes, 2 * bytes / rank.at("units").at(2).get<double>());
    }
    shares.push_back({kind, bytes});
  }
  double temporary = 0;
  for (const MemoryShare& one : shares) {
    const bool is_temporary =
        one.kind == "activations" || one.kind == "gathered" || one.kind == "unreduced";
    if (is_temporary) temporary += one.bytes;
  }
  std::set<std::string> groups;
  for (const Json& one : rank.at("traffic")) groups.insert(one.at("axis").get<std::string>());
  shares.push_back(
      {"reserve", reserve_bytes(!target.is_cpu(), static_cast<int>(groups.size()), temporary)});
  return shares;
}

MemoryFit memory_of(const Json& layout, const recipe::Recipe& recipe, const PlanTarget& target,
                    double capacity) {
  MemoryFit highest{.shares = {}, .capacity = capacity};
  for (const Json& rank : layout.at("ranks")) {
    MemoryFit one{.shares = shares_of(rank, recipe, target), .capacity = capacity};
    if (one.total() > highest.total()) highest = std::move(one);
  }
  return highest;
}

std::vector<MemoryShare> with_reserve(std::vector<MemoryShare> shares, const PlanTarget& target) {
  std::erase_if(shares, [](const MemoryShare& one) { return one.bytes == 0; });
  shares.push_back({"reserve", reserve_bytes(!target.is_cpu(), 0, 0)});
  return shares;
}

// The replayed peak of the worker, on a CPU.
std::optional<std::vector<MemoryShare>> replayed(const Json& layout, const PlanTarget& target) {
  const auto found = layout.find("measured");
  if (!target.is_cpu() || found == layout.end() || !found->is_object()) return std::nullopt;
  std::vector<MemoryShare> shares;
  for (const auto& [kind, bytes] : found->at("bytes").items()) {
    shares.push_back({kind, bytes.get<double>()});
  }
  return with_reserve(std::move(shares), target);
}

// Collectives inside layers are exposed; those of gradients, parameters and between pipeline stages
// overlap with computation.
bool overlaps(const Json& traffic) {
  const auto what = traffic.at("what").get<std::string>();
  return traffic.at("axis") == "pipeline" || what == "gradients" || what == "parameters";
}

StepTime time_of(const Json& rank, const Json& layout, const DeviceSpeed& speed) {
  const Json& flops = rank.at("flops");
  const Json& bytes = rank.at("bytes");
  // AdamW reads weights, gradients and two averages, and writes all but the gradients.
  const double optimizer_bytes =
      3 * number_at(bytes, "gradients") + 2 * number_at(bytes, "optimizer");
  const StepWork work{
      .forward_flops = number_at(flops, "forward"),
      .backward_flops = number_at(flops, "backward") + number_at(flops, "recomputed"),
      .optimizer_bytes = optimizer_bytes,
      .idle_share = number_at(layout, "idle_share")};
  std::vector<StepExchange> exchanges;
  for (const Json& one : rank.at("traffic")) {
    exchanges.push_back({.calls = one.at("calls").get<std::int64_t>(),
                         .sent_bytes = one.at("sent_bytes").get<double>(),
                         .between_nodes = one.at("nodes").get<int>() > 1,
                         .overlaps = overlaps(one)});
  }
  return predict_step_time(work, exchanges, speed);
}

StepTime slowest(const Json& layout, const DeviceSpeed& speed) {
  StepTime slowest;
  for (const Json& rank : layout.at("ranks")) {
    const StepTime time = time_of(rank, layout, speed);
    if (time.total() > slowest.total()) slowest = time;
  }
  return slowest;
}

// Returns `time` with its computation scaled to a measured step of one node.
StepTime scaled(StepTime time, double measured_s, bool one_node) {
  const double fixed = one_node ? 0 : time.exposed;
  const double factor = measured_s / std::max(time.total() - fixed, 1e-12);
  time.forward *= factor;
  time.backward *= factor;
  time.idle *= factor;
  time.optimizer *= factor;
  if (one_node) time.exposed *= factor;
  return time;
}

std::int64_t steps_of(const recipe::Recipe& recipe, std::int64_t samples, std::int64_t batch) {
  using Unit = recipe::Duration::Unit;
  if (recipe.length.unit == Unit::kSteps) return std::llround(recipe.length.value);
  if (recipe.length.unit != Unit::kEpochs || samples == 0 || batch == 0) return 0;
  return std::llround(recipe.length.value * static_cast<double>(samples / batch));
}

// Bytes of weights and optimizer state that a rank saves, and those of the whole model.
struct SavedState {
  double of_rank = 0, of_model = 0;
};

SavedState saved_state(const recipe::Recipe& recipe, const Json& layout) {
  SavedState state;
  for (const Json& rank : layout.at("ranks")) {
    const Json& bytes = rank.at("bytes");
    const double own = number_at(bytes, "gradients") + number_at(bytes, "optimizer") +
                       number_at(bytes, "averages");
    state.of_rank = std::max(state.of_rank, own);
    state.of_model += own;
  }
  // The layout lists one rank of each stage; multiples of it hold one model replica.
  const auto stages = static_cast<double>(layout.at("ranks").size());
  state.of_model *= recipe::ranks_of_copy(recipe) / stages;
  return state;
}

SavePlan saves_of(const recipe::Recipe& recipe, const PlanTarget& target, const Json& layout) {
  constexpr double kToHost = 10e9;  // bytes a second that a rank copies before training goes on
  const SavedState state = saved_state(recipe, layout);
  const double storage = target.storage_gb_s * kGiga;
  const double stall = recipe.checkpoint.async ? state.of_rank / kToHost : state.of_model / storage;
  return plan_saves(state.of_model, storage, stall, recipe.checkpoint.mtbf_hours * kSecondsOfHour);
}

std::optional<double> mfu_of(const Json& layout, double step_s, std::optional<double> peak) {
  if (!peak || *peak <= 0 || step_s <= 0) return std::nullopt;
  double flops = 0;
  for (const Json& rank : layout.at("ranks")) {
    flops += number_at(rank.at("flops"), "forward") + number_at(rank.at("flops"), "backward");
  }
  return flops / static_cast<double>(layout.at("ranks").size()) / step_s / *peak;
}

}  // namespace

Json ask_layout_of(const recipe::Recipe& recipe, const PlanTarget& target) {
  recipe::plan_batch(recipe, target.ranks());
  if (!target.is_cpu()) return ask_layout(recipe, target.ranks(), target.nproc);
  constexpr double kMega = 1e6, kShare = 0.25;
  const int threads = std::max(1, core::usable_cores() / target.nproc);
  const double memory_mb = kShare * machine_memory_bytes() / kMega;
  return ask_layout(recipe, target.ranks(), target.nproc,
                    {"--measure-mb", fmt::format("{:.0f}", std::max(1.0, memory_mb)), "--threads",
                     std::to_string(threads)});
}

Prediction predict(const recipe::Recipe& recipe, const PlanTarget& target, const Json& layout,
                   const ProbedStep& probed) {
  Machine machine = machine_of(recipe, target, layout);
  Prediction result{.memory = memory_of(layout, recipe, target, machine.memory_bytes),
                    .mtbf_hours = recipe.checkpoint.mtbf_hours,
                    .notes = std::move(machine.notes)};
  std::optional<std::vector<MemoryShare>> measured = replayed(layout, target);
  if (!probed.memory.empty()) measured = with_reserve(probed.memory, target);
  if (measured) {
    result.memory.shares = *std::move(measured);
    result.memory_was_measured = true;
  }
  result.time = slowest(layout, machine.speed);
  if (probed.seconds > 0) {
    result.time = scaled(result.time, probed.seconds, target.nodes == 1);
    result.notes.clear();
  }
  const recipe::Cost rates = recipe.cost.value_or(recipe::Cost());
  const DataSize data = training_data_size(recipe);
  result.global_batch = layout.at("global_batch").get<std::int64_t>();
  result.steps = steps_of(recipe, data.samples, result.global_batch);
  result.cost =
      predict_cost({.steps = result.steps,
                    .step_s = result.time.total(),
                    .devices = target.ranks(),
                    .global_batch = result.global_batch,
                    .sample_bytes = data.sample_bytes,
                    .watts = machine.watts,
                    .price = target.price ? target.price : rates.price,
                    .price_of_kwh = target.price_of_kwh ? target.price_of_kwh : rates.kwh_price,
                    .g_per_kwh = rates.carbon_intensity()});
  result.saves = saves_of(recipe, target, layout);
  result.mfu = mfu_of(layout, result.time.total(), machine.peak_flops);
  return result;
}

}  // namespace scaletrain::launcher
