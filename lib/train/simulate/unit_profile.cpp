#include "lib/train/simulate/unit_profile.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "lib/engine/engine.h"
#include "lib/engine/recompute.h"
#include "lib/parallel/data_parallel.h"
#include "lib/train/model/context_layout.h"
#include "lib/train/model/tensor_layout.h"
#include "lib/train/simulate/blank_batch.h"

namespace scaletrain::train {
namespace {

using core::Axis;
using dist::FakeKind;

constexpr std::int64_t kFewTokens = 8;
// Units at each end that are measured individually: divided tokens are joined before the last unit,
// and a custom loss is computed there.
constexpr std::size_t kEnds = 2;
constexpr std::int64_t kFewSamples = 2;  // BatchNorm needs two values of a channel

// A unit that represents later units like it; unit numbers in the model.
struct Kind {
  std::size_t unit = 0;
  std::vector<std::size_t> alike;  // this unit and the later ones
};

// The shapes of its tensors, which no other kind of units has.
std::vector<std::int64_t> shape_of(const units::Unit& unit, nn::Model& model) {
  std::vector<std::int64_t> shape{unit.draws ? 1 : 0};
  const auto parameters = model.named_parameters();
  const auto buffers = model.named_buffers();
  for (const std::string& name : unit.tensors) {
    const at::Tensor* tensor = parameters.find(name);
    if (tensor == nullptr) tensor = buffers.find(name);
    if (tensor == nullptr) continue;
    shape.push_back(tensor->dim());
    shape.push_back(tensor->requires_grad() ? 1 : 0);
    shape.insert(shape.end(), tensor->sizes().begin(), tensor->sizes().end());
  }
  return shape;
}

// Consecutive units are alike if they have the same shapes and the same activation checkpointing.
std::vector<Kind> kinds_of(const std::vector<units::Unit>& units, nn::Model& model,
                           const std::vector<bool>& again) {
  std::vector<Kind> kinds;
  std::vector<std::int64_t> last;
  std::map<bool, std::size_t> known;  // kinds of these shapes, by activation checkpointing
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    std::vector<std::int64_t> shape = shape_of(units[unit], model);
    const bool is_end = unit <= kEnds || unit + kEnds >= units.size();
    if (is_end || shape != last) known.clear();
    const auto [kind, is_new] = known.emplace(again[unit], kinds.size());
    if (is_new) kinds.push_back({.unit = unit, .alike = {}});
    kinds[kind->second].alike.push_back(unit);
    last = std::move(shape);
  }
  return kinds;
}

// How large a micro-batch is.
struct Size {
  std::int64_t samples = 1, tokens = 1;
};

// Returns the sizes to measure. Costs are linear in the samples and quadratic in the tokens of a
// sample, so a few small sizes predict any size; a small `whole` is measured itself. Kernels behave
// differently for a single sample, so several samples are used.
std::vector<Size> sizes_to_measure(const Size& whole, bool has_tokens, std::int64_t ranks) {
  const std::int64_t few = (kFewTokens + ranks - 1) / ranks * ranks;
  if (has_tokens && whole.tokens >= 3 * few) {
    const std::int64_t samples = std::min(whole.samples, kFewSamples);
    return {{samples, few}, {samples, 2 * few}, {samples, 3 * few}};
  }
  if (whole.samples <= 2 * kFewSamples) return {whole};
  return {{kFewSamples, whole.tokens}, {2 * kFewSamples, whole.tokens}};
}

// `at[i]` was measured at `sizes[i]`; returns the prediction for `whole`.
double value_at(const Size& whole, const std::vector<Size>& sizes, const std::vector<double>& at) {
  if (sizes.size() == 1) return at[0];
  const double samples = static_cast<double>(whole.samples) / static_cast<double>(sizes[0].samples);
  if (sizes.size() == 2) return at[0] + (samples - 1) * (at[1] - at[0]);
  const double tokens = static_cast<double>(whole.tokens) / static_cast<double>(sizes[0].tokens);
  const double quadratic = (at[2] - 2 * at[1] + at[0]) / 2;
  const double linear = at[1] - at[0] - 3 * quadratic;
  const double fixed = at[0] - linear - quadratic;
  return fixed + samples * (linear * tokens + quadratic * tokens * tokens);
}

class OneBatch : public engine::MicroBatches {
 public:
  explicit OneBatch(task::Example example) : example_(std::move(example)) {}
  std::int64_t count() const override { return 1; }
  task::Example next() override { return example_; }

 private:
  task::Example example_;
};

// Attributes collectives to units: to the running unit, and in backward to the unit whose output
// gradient came last.
class Attribution {
 public:
  explicit Attribution(dist::FakeNetwork& network) : network_(network) {}

  // Returns `unit` with a hook that reports its number when it runs.
  units::Unit of(units::Unit unit, std::size_t number) {
    unit.run = [this, number, run = std::move(unit.run)](units::Flow input,
                                                         const units::Context& context) {
      begin(number);
      units::Flow output = run(std::move(input), context);
      for (const at::Tensor& tensor : output) {
        if (!tensor.requires_grad()) continue;
        tensor.register_hook([this, number](const at::Tensor& gradient) {
          begin(number);
          return gradient;
        });
      }
      return output;
    };
    return unit;
  }

  // Returns, by unit, the calls to the group of `ranks`.
  std::map<std::size_t, std::vector<dist::FakeCall>> take(const std::vector<int>& ranks) {
    std::map<std::size_t, std::vector<dist::FakeCall>> result;
    const std::vector<dist::FakeCall> calls = network_.calls();
    for (std::size_t i = 0; i < begun_.size(); ++i) {
      const std::size_t end = i + 1 < begun_.size() ? begun_[i + 1].first : calls.size();
      for (std::size_t call = begun_[i].first; call < end; ++call) {
        if (calls[call].ranks == ranks) result[begun_[i].second].push_back(calls[call]);
      }
    }
    begun_.clear();
    network_.forget();
    return result;
  }

 private:
  void begin(std::size_t number) { begun_.emplace_back(network_.count(), number); }

  dist::FakeNetwork& network_;
  std::vector<std::pair<std::size_t, std::size_t>> begun_;  // number of the first call, unit
};

// Measures units of each kind.
class Profiler {
 public:
  Profiler(const recipe::Recipe& recipe, Learner& learner, dist::Mesh& mesh,
           dist::FakeNetwork& network, std::int64_t samples)
      : recipe_(recipe),
        learner_(learner),
        mesh_(mesh),
        network_(network),
        cut_(open_token_cut(mesh)),
        task_(task::make_task(recipe, at::kCPU)),
        units_(units_of_part(recipe, mesh, {learner.model, learner.parts}, *task_)),
        has_tokens_(recipe::reads_tokens(recipe.model)),
        whole_{.samples = samples, .tokens = has_tokens_ ? recipe.data.context : 1},
        sizes_(sizes_to_measure(whole_, has_tokens_,
                                mesh.size(Axis::kTensor) * chunks_of(mesh.size(Axis::kContext)))),
        placement_(learner.parameters(), mesh, {}) {}

  std::vector<UnitProfile> run() {
    std::vector<UnitProfile> profiles(units_.size());
    measure_kept(profiles);
    std::vector<bool> again = choose_again(profiles);
    for (std::size_t unit = 0; unit < units_.size(); ++unit) {
      profiles[unit].runs_again = again[unit];
    }
    const int rank = mesh_.rank();
    const core::MeshPlan& plan = mesh_.plan();
    if (mesh_.size(Axis::kTensor) > 1) {
      measure_exchanges(profiles, again, plan.group(rank, {Axis::kTensor}),
                        &UnitProfile::exchanges);
    }
    if (plan.experts() > 1) {
      measure_exchanges(profiles, again, plan.expert_group(rank), &UnitProfile::tokens);
    }
    if (cut_) {
      // With two ranks a link may have those of the group.
      const auto is_sum = [](FakeKind kind) { return kind == FakeKind::kAllReduce; };
      measure_exchanges(profiles, again, plan.link(rank, Axis::kContext), &UnitProfile::keys,
                        [is_sum](FakeKind kind) { return !is_sum(kind); });
      measure_exchanges(profiles, again, plan.group(rank, {Axis::kContext}), &UnitProfile::sums,
                        is_sum);
    }
    return profiles;
  }

 private:
  // Returns the chunks into which `ranks` ranks divide a sequence.
  static std::int64_t chunks_of(std::int64_t ranks) { return ranks == 1 ? 1 : 2 * ranks; }

  engine::Engine engine_of(std::vector<units::Unit> units, std::int64_t chunk) {
    return engine::Engine({.model = *learner_.model,
                           .task = *task_,
                           .precision = *learner_.precision,
                           .placement = placement_,
                           .mesh = mesh_,
                           .units = std::move(units)},
                          recipe_.seed, {.chunk = chunk});
  }

  task::Example batch_of(const Size& size) const {
    const task::Example whole = blank_batch(recipe_, *task_, size.samples, size.tokens);
    return cut_ ? own_tokens(whole, *cut_) : whole;
  }

  void measure_kept(std::vector<UnitProfile>& profiles) {
    const std::vector<Kind> kinds =
        kinds_of(units_, *learner_.model, std::vector<bool>(units_.size(), false));
    std::vector<std::int64_t> inputs(kinds.size(), 1);
    std::vector<units::Flops> flops(kinds.size());
    std::vector<units::Unit> ones;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      units::Unit& one = ones.emplace_back(units_[kinds[i].unit]);
      one.run = [&count = inputs[i], &own = flops[i], run = one.run](
                    units::Flow flow, const units::Context& context) {
        count = static_cast<std::int64_t>(flow.size());
        const units::FlopCounter counter(units::FlopCounter::Threads::kThis);
        units::Flow output = run(std::move(flow), context);
        own = counter.count().forward;
        return output;
      };
    }
    engine::Engine engine = engine_of(ones, recipe_.loss.chunk);
    engine::Engine whole = engine_of(std::move(ones), 0);  // runs the last unit too, for its FLOPs
    std::vector<std::vector<engine::UnitCost>> costs;
    std::vector<std::vector<units::Flops>> flops_at;
    for (const Size& size : sizes_) {
      costs.push_back(engine.measure_units(batch_of(size)));
      if (recipe_.loss.chunk > 0) whole.measure_units(batch_of(size));
      flops_at.push_back(flops);
    }
    network_.forget();
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      std::vector<double> saved, input, products, attention;
      for (std::size_t size = 0; size < sizes_.size(); ++size) {
        saved.push_back(static_cast<double>(costs[size][i].saved_bytes));
        input.push_back(static_cast<double>(costs[size][i].input_bytes));
        products.push_back(flops_at[size][i].products);
        attention.push_back(flops_at[size][i].attention);
      }
      for (const std::size_t unit : kinds[i].alike) {
        profiles[unit].name = units_[unit].name;
        profiles[unit].inputs = inputs[i];
        profiles[unit].saved_bytes = std::llround(value_at(whole_, sizes_, saved));
        profiles[unit].input_bytes = std::llround(value_at(whole_, sizes_, input));
        profiles[unit].flops = {.products = value_at(whole_, sizes_, products),
                                .attention = value_at(whole_, sizes_, attention)};
      }
    }
  }

  // As a run chooses (lib/train/build/recompute_choice.h).
  std::vector<bool> choose_again(const std::vector<UnitProfile>& profiles) const {
    if (!recipe_.recompute || !recipe_.recompute->budget_mb) {
      return engine::recomputed_units(recipe_.recompute, units_);
    }
    std::vector<engine::UnitCost> costs;
    for (const UnitProfile& one : profiles) {
      costs.push_back({one.name, one.saved_bytes, one.input_bytes, 1});
    }
    constexpr std::int64_t kBytesOfMegabyte = 1'000'000;
    return engine::within_budget(costs, *recipe_.recompute->budget_mb * kBytesOfMegabyte);
  }

  // Measures these kinds of collectives in the group of `ranks`.
  void measure_exchanges(
      std::vector<UnitProfile>& profiles, const std::vector<bool>& again,
      const std::vector<int>& ranks, std::vector<UnitExchange> UnitProfile::*exchanges,
      const std::function<bool(FakeKind)>& counts = [](FakeKind) { return true; }) {
    const std::vector<Kind> kinds = kinds_of(units_, *learner_.model, again);
    Attribution attribution(network_);
    std::vector<units::Unit> ones;
    std::vector<bool> ones_again;
    for (const Kind& kind : kinds) {
      ones.push_back(attribution.of(units_[kind.unit], ones.size()));
      ones_again.push_back(again[kind.unit]);
    }
    engine::Engine engine = engine_of(std::move(ones), recipe_.loss.chunk);
    engine.set_recomputed(ones_again);
    // Collectives by unit and kind, at each size.
    std::map<std::pair<std::size_t, FakeKind>, std::vector<UnitExchange>> found;
    for (std::size_t size = 0; size < sizes_.size(); ++size) {
      OneBatch batch(batch_of(sizes_[size]));
      engine.run(0, batch, at::full({}, 1.0), [](const at::Tensor&) {});
      placement_.zero_grad();
      for (const auto& [unit, calls] : attribution.take(ranks)) {
        for (const dist::FakeCall& call : calls) {
          if (!counts(call.kind)) continue;
          auto& at_sizes = found[{unit, call.kind}];
          at_sizes.resize(sizes_.size());
          at_sizes[size].calls += 1;
          at_sizes[size].bytes += static_cast<double>(call.bytes);
        }
      }
    }
    for (const auto& [key, at_sizes] : found) {
      std::vector<double> calls, bytes;
      for (const UnitExchange& one : at_sizes) {
        calls.push_back(one.calls);
        bytes.push_back(one.bytes);
      }
      const UnitExchange whole{.kind = key.second,
                               .calls = value_at(whole_, sizes_, calls),
                               .bytes = value_at(whole_, sizes_, bytes)};
      for (const std::size_t unit : kinds[key.first].alike) {
        (profiles[unit].*exchanges).push_back(whole);
      }
    }
  }

  const recipe::Recipe& recipe_;
  Learner& learner_;
  const dist::Mesh& mesh_;
  dist::FakeNetwork& network_;
  std::optional<units::TokenCut> cut_;  // context parallelism
  std::unique_ptr<task::Task> task_;
  std::vector<units::Unit> units_;
  bool has_tokens_;
  Size whole_;
  std::vector<Size> sizes_;
  parallel::DataParallel placement_;  // never started, so it communicates nothing
};

}  // namespace

std::vector<UnitProfile> profile_units(const recipe::Recipe& recipe, Learner& learner,
                                       dist::Mesh& mesh, dist::FakeNetwork& network,
                                       std::int64_t samples) {
  return Profiler(recipe, learner, mesh, network, samples).run();
}

}  // namespace scaletrain::train
