// What a rank's tensors take where ranks hold a model together, against arithmetic.
#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <sstream>

#include "lib/optim/optimizer.h"
#include "lib/parallel/sharded.h"
#include "tests/dist/ranks.h"
#include "tests/engine/counting_allocator.h"
#include "tests/engine/one_rank.h"

namespace scaletrain::engine {
namespace {

using namespace std::chrono_literals;
using parallel::ShardLevel;
using testing::CountingAllocator;
using testing::example_of;

constexpr int kRanks = 4;
constexpr int kFirstSteps = 1;  // which allocate what lasts
constexpr int kMeasuredSteps = 1;

// 8 units of 12.6 MB; what is beside them is 0.2 MB.
recipe::Recipe recipe_of_8_units() {
  return testing::recipe_of_model("gpt2", {{"vocab_size", std::int64_t{50}},
                                           {"positions", std::int64_t{8}},
                                           {"dim", std::int64_t{512}},
                                           {"depth", std::int64_t{8}},
                                           {"heads", std::int64_t{8}}});
}

struct Measured {
  double parameters = 0, largest_unit = 0, peak = 0;  // bytes
  double units = 0;                                   // that were there at the same time
};

// Measures AdamW's steps of `micro_steps` micro-batches.
Measured measure(const dist::Mesh& mesh, ShardLevel level, std::size_t micro_steps = 2) {
  CountingAllocator& allocator = CountingAllocator::install();
  const recipe::Recipe recipe = recipe_of_8_units();
  const auto model = nn::make_model(recipe.model, recipe.data.image_size, 1);
  const auto task = task::make_task(recipe, at::kCPU);
  const auto precision = precision::make_precision(recipe.precision, {.avx512 = true});
  model->train();
  Measured measured;
  std::map<std::string, double> bytes;
  std::vector<units::NamedParameter> parameters;
  for (const auto& item : model->named_parameters()) {
    parameters.push_back({.name = item.key(), .tensor = item.value()});
    bytes[item.key()] = static_cast<double>(item.value().nbytes());
    measured.parameters += bytes[item.key()];
  }
  parallel::ShardingOptions sharding{.level = level};
  for (const units::Unit& unit : model->units()) {
    sharding.units.push_back(unit.tensors);
    double sum = 0;
    for (const std::string& name : unit.tensors) sum += bytes[name];
    measured.largest_unit = std::max(measured.largest_unit, sum);
  }
  const auto placement = parallel::make_placement(std::move(parameters), mesh, sharding);
  Engine engine({*model, *task, *precision, *placement, mesh}, /*seed=*/3, {});
  placement->start({});
  recipe::Optimizer config;
  recipe::choose(config, *recipe::optimizers().find("adamw"));
  const auto optimizer = optim::make_optimizer(config, engine.owned());
  std::vector<task::Example> examples{example_of(recipe, 2, 1), example_of(recipe, 2, 2)};
  examples.resize(micro_steps);
  for (int step = 0; step < kFirstSteps + kMeasuredSteps; ++step) {
    if (step == kFirstSteps) allocator.restart_peak();
    testing::SameBatches batches(examples);
    engine.run(step, batches, at::full({}, 0.01), [](const at::Tensor&) {});
    optimizer->step(1e-3);
    engine.weights_changed();
  }
  measured.peak = static_cast<double>(allocator.peak());
  const auto* const sharded = dynamic_cast<const parallel::Sharded*>(placement.get());
  if (sharded != nullptr) measured.units = static_cast<double>(sharded->most_units());
  return measured;
}

std::string text_of_measured(const Measured& one) {
  return fmt::format("{} {} {} {}\n", one.parameters, one.largest_unit, one.peak, one.units);
}

std::vector<Measured> read_measured(const std::string& text) {
  std::vector<Measured> all;
  std::istringstream stream(text);
  for (Measured one; stream >> one.parameters >> one.largest_unit >> one.peak >> one.units;) {
    all.push_back(one);
  }
  return all;
}

constexpr std::array kMeasuredLevels{ShardLevel::kOptimizer, ShardLevel::kGradients,
                                     ShardLevel::kParameters};

// Measures one process.
Measured measure_alone() {
  const auto alone =
      testing::run_ranks({.world_size = 1, .limit_s = 200}, [](const core::WorkerEnv& env) {
        at::set_num_threads(1);
        dist::Group world(env, at::kCPU, 60s);
        return text_of_measured(
            measure(dist::Mesh(world, core::MeshPlan(1)), ShardLevel::kOptimizer));
      });
  CAPTURE(alone[0].text);
  return read_measured(alone[0].text).at(0);
}

TEST_CASE(
    "gradient accumulation holds gradients once with data parallel, and in full with ZeRO-1") {
  const Measured whole = measure_alone();
  const double p = whole.parameters, activations = whole.peak - 4 * p;
  const double part = p / kRanks, two_units = 2 * whole.largest_unit;
  struct Row {
    int shard;
    std::size_t micro_steps;
    double bytes;
  };
  const std::array rows{
      // Parameters, gradients as views of the buckets, the averages.
      Row{1, 2, p + p + 2 * p + activations}, Row{1, 1, p + p + 2 * p + activations},
      // Parameters, all blocks of gradients, a part of the averages.
      Row{kRanks, 2, p + p + 2 * part + activations},
      // Parameters, a part of the gradients and two blocks in flight, a part of the averages.
      Row{kRanks, 1, p + part + two_units + 2 * part + activations}};
  for (const Row& row : rows) {
    const auto results =
        testing::run_ranks({.world_size = kRanks, .limit_s = 200}, [&](const core::WorkerEnv& env) {
          at::set_num_threads(1);
          dist::Group world(env, at::kCPU, 60s, core::Beat(), {}, dist::CpuExchange::kShm);
          core::MeshSizes sizes;
          sizes.shard = row.shard;
          const dist::Mesh mesh(world, core::MeshPlan(kRanks, sizes));
          return text_of_measured(measure(mesh, ShardLevel::kOptimizer, row.micro_steps));
        });
    for (const auto& result : results) {
      CAPTURE(result.text);
      CAPTURE(row.bytes);
      const Measured measured = read_measured(result.text).at(0);
      CHECK(measured.peak / row.bytes < 1.1);
      CHECK(measured.peak / row.bytes > 0.9);
    }
  }
}

TEST_CASE("a rank's tensors take within a tenth what arithmetic says") {
  const Measured whole = measure_alone();
  const double p = whole.parameters;
  CHECK(p > 100e6);
  // One process has parameters, gradients and AdamW's two averages: the rest is activations, and
  // what operations need for a moment.
  const double activations = whole.peak - 4 * p;
  CHECK(activations > 0);
  const double part = p / kRanks, two_units = 2 * whole.largest_unit;
  const std::array expected{
      // Parameters, gradients as micro-steps add them up, a part of the averages.
      p + p + 2 * part + activations,
      // Parameters, a part of the gradients and two units' that are on their way, the averages'.
      p + part + two_units + 2 * part + activations,
      // A part of the parameters and two units', of the gradients and two units', the averages'.
      part + two_units + part + two_units + 2 * part + activations,
  };
  const auto check = [&](ShardLevel level, dist::CpuExchange exchange, double bytes) {
    const auto results =
        testing::run_ranks({.world_size = kRanks, .limit_s = 200}, [&](const core::WorkerEnv& env) {
          at::set_num_threads(1);
          dist::Group world(env, at::kCPU, 60s, core::Beat(), {}, exchange);
          core::MeshSizes sizes;
          sizes.shard = kRanks;
          const dist::Mesh mesh(world, core::MeshPlan(kRanks, sizes));
          return text_of_measured(measure(mesh, level));
        });
    for (const auto& result : results) {
      CAPTURE(result.text);
      CAPTURE(bytes);
      const Measured measured = read_measured(result.text).at(0);
      CHECK(measured.peak / bytes < 1.1);
      CHECK(measured.peak / bytes > 0.9);
      CHECK(measured.units == (level == ShardLevel::kParameters ? 2 : 0));
    }
  };
  for (std::size_t i = 0; i < kMeasuredLevels.size(); ++i) {
    check(kMeasuredLevels.at(i), dist::CpuExchange::kShm, expected.at(i));
  }
  // Gloo makes a copy of what it gathers and one of what it adds up.
  check(ShardLevel::kParameters, dist::CpuExchange::kGloo, expected[2] + two_units);
}

}  // namespace
}  // namespace scaletrain::engine
