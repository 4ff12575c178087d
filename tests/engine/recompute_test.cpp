#include "lib/engine/recompute.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/error.h"
#include "lib/units/memory_meter.h"
#include "tests/dist/ranks.h"
#include "tests/engine/one_rank.h"

namespace scaletrain::engine {
namespace {

using recipe::Recompute;
using units::MemoryKind;

const Recompute kAll{.units = "all", .every = {}, .match = {}};
const Recompute kSecond{.units = {}, .every = 2, .match = {}};

recipe::Recipe small_vit() {
  return testing::recipe_of_model("vit_tiny", {{"patch_size", std::int64_t{8}},
                                               {"dim", std::int64_t{16}},
                                               {"depth", std::int64_t{4}},
                                               {"heads", std::int64_t{2}},
                                               {"dropout", 0.2},
                                               {"drop_path", 0.2}});
}

recipe::Recipe small_gpt(std::int64_t depth = 4) {
  return testing::recipe_of_model("gpt2", {{"vocab_size", std::int64_t{11}},
                                           {"positions", std::int64_t{16}},
                                           {"dim", std::int64_t{16}},
                                           {"depth", depth},
                                           {"heads", std::int64_t{2}},
                                           {"dropout", 0.2}});
}

// Models with everything random that they have, of attention and of convolutions.
std::vector<recipe::Recipe> families() {
  return {small_vit(),
          small_gpt(),
          testing::recipe_of_model("llama", {{"vocab_size", std::int64_t{11}},
                                             {"positions", std::int64_t{16}},
                                             {"dim", std::int64_t{16}},
                                             {"depth", std::int64_t{3}},
                                             {"heads", std::int64_t{2}},
                                             {"kv_heads", std::int64_t{1}}}),
          testing::recipe_of_model("mixtral", {{"vocab_size", std::int64_t{11}},
                                               {"positions", std::int64_t{16}},
                                               {"dim", std::int64_t{16}},
                                               {"depth", std::int64_t{3}},
                                               {"heads", std::int64_t{4}},
                                               {"hidden", std::int64_t{24}},
                                               {"capacity_factor", 1.0},
                                               {"router_bias_rate", 0.1}}),
          testing::recipe_of_model("resnet18"),
          testing::recipe_of_model("mobilenet_v3_small", {{"dropout", 0.2}}),
          testing::recipe_of_model("mlp")};
}

bool same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](const at::Tensor& one, const at::Tensor& other) {
                                              return at::equal(one, other);
                                            });
}

// The gradients and buffers of two steps of two micro-batches each.
std::vector<at::Tensor> trained(const recipe::Recipe& recipe, bool frozen_stem = false) {
  const auto model = nn::make_model(recipe.model, recipe.data.image_size, 1);
  if (frozen_stem) {
    auto named = model->named_parameters();
    const units::Unit stem = model->units().front();
    for (const std::string& name : stem.tensors) {
      if (at::Tensor* const found = named.find(name)) found->set_requires_grad(false);
    }
  }
  testing::OneRank rank(recipe, model);
  std::vector<at::Tensor> all;
  for (std::uint64_t step = 0; step < 2; ++step) {
    for (const at::Tensor& one :
         rank.step(static_cast<std::int64_t>(step), {testing::example_of(recipe, 2, 10 + step),
                                                     testing::example_of(recipe, 2, 20 + step)})) {
      all.push_back(one);
    }
  }
  return all;
}

bool is_quick(const recipe::Recipe& recipe, const std::string& precision) {
  const bool convolves = !recipe.model.options.contains("dim") && recipe.model.name != "mlp";
  return precision == "fp32" || !convolves || precision::has_avx512();
}

// The highest use of activations in a step.
double activation_bytes(const recipe::Recipe& recipe) {
  testing::OneRank rank(recipe);
  const std::vector<task::Example> examples{testing::example_of(recipe, 8, 1)};
  const auto meter = std::make_shared<units::MemoryMeter>(at::kCPU);
  const units::MemoryWatch watch(meter);
  rank.step(0, examples);
  return static_cast<double>(meter->peak_of_each().of(MemoryKind::kActivations));
}

// A unit that does `run` to the main tensor.
units::Unit unit_of(std::string name, std::function<at::Tensor(at::Tensor)> run) {
  return {.name = std::move(name),
          .tensors = {},
          .run = [run = std::move(run)](units::Flow flow, const units::Context&) -> units::Flow {
            return {run(flow[0])};
          }};
}

std::string error_of_units(const Recompute& recompute, const std::vector<std::string>& names) {
  std::vector<units::Unit> units;
  for (const std::string& name : names) units.push_back({.name = name, .tensors = {}, .run = {}});
  try {
    recomputed_units(recompute, units);
  } catch (const core::Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

// The test with ranks comes first: a process that has run a backward cannot fork ones that do.

// SyncBatchNorm's collectives run again too, between those of the exchange of gradients.
TEST_CASE("ranks that exchange gradients and sums of norms have the bits they have without it") {
  const auto gradients = [](const std::optional<Recompute>& recompute) {
    return testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
      at::set_num_threads(1);  // the ranks share the cores
      dist::Group world(env, at::kCPU, std::chrono::seconds(30));
      dist::Mesh mesh(world, core::MeshPlan(2));
      const recipe::Recipe recipe = testing::recipe_of_model(
          "mobilenet_v3_small", {{"norm", std::string("sync_batch")}, {"dropout", 0.2}});
      const auto model = nn::make_model(recipe.model, 32, 1);
      model->train();
      const auto task = task::make_task(recipe, at::kCPU);
      const auto precision = precision::make_precision(recipe.precision, {});
      std::vector<units::NamedParameter> parameters;
      for (const auto& item : model->named_parameters()) {
        parameters.push_back({item.key(), item.value()});
      }
      const auto placement = parallel::make_placement(parameters, mesh);
      placement->start({});
      Engine engine({*model, *task, *precision, *placement, mesh}, 1, {.recompute = recompute});
      const auto rank = static_cast<std::uint64_t>(env.rank);
      const std::vector<task::Example> examples{testing::example_of(recipe, 2, 30 + rank),
                                                testing::example_of(recipe, 2, 40 + rank)};
      testing::SameBatches batches(examples);
      engine.run(0, batches, at::ones({}), [](const at::Tensor&) {});
      mesh.end("end");
      double sum = 0, squares = 0;
      for (const at::Tensor& one : engine.gradients()) {
        sum += one.to(at::kDouble).sum().item<double>();
        squares += one.to(at::kDouble).square().sum().item<double>();
      }
      for (const at::Tensor& one : model->buffers()) {
        sum += one.to(at::kDouble).sum().item<double>();
      }
      return fmt::format("{:a} {:a}", sum, squares);
    });
  };
  const auto plain = gradients({}), again = gradients(kAll);
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(plain[rank].status == 0);
    CHECK(again[rank].text == plain[rank].text);
  }
}

TEST_CASE("gradients and buffers of models of all kinds have the bits they have without it") {
  for (recipe::Recipe recipe : families()) {
    for (const std::string precision : {"fp32", "bf16"}) {
      // Without AVX-512 LibTorch's convolutions in bf16 take minutes.
      if (!is_quick(recipe, precision)) continue;
      recipe::choose(recipe.precision, *recipe::precisions().find(precision));
      CAPTURE(recipe.model.name);
      CAPTURE(precision);
      recipe.recompute.reset();
      const std::vector<at::Tensor> plain = trained(recipe), frozen = trained(recipe, true);
      recipe.recompute = kAll;
      CHECK(same_bits(trained(recipe, true), frozen));
      CHECK(same_bits(trained(recipe), plain));
      recipe.recompute = kSecond;
      CHECK(same_bits(trained(recipe), plain));
    }
  }
}

TEST_CASE("24 blocks keep a fifth of the activations, with every second one three fifths") {
  recipe::Recipe vit = small_vit();
  vit.model.options.at("depth") = std::int64_t{24};
  vit.model.options.at("patch_size") = std::int64_t{4};
  for (recipe::Recipe recipe : {vit, small_gpt(24)}) {
    CAPTURE(recipe.model.name);
    const double all = activation_bytes(recipe);
    recipe.recompute = kAll;
    CHECK(activation_bytes(recipe) <= 0.2 * all);
    recipe.recompute = kSecond;
    CHECK(activation_bytes(recipe) <= 0.6 * all);
  }
}

TEST_CASE("a unit runs again once, when backward comes to it") {
  std::string runs;
  const RunUnit run = [&](const units::Flow& flow, bool again) -> units::Flow {
    runs += again ? "again " : "first ";
    return {flow[0].sin().cos().exp()};
  };
  at::Tensor input = at::ones({3}).requires_grad_();
  const at::Tensor output = run_for_recompute(run, {input})[0];
  runs += "backward ";
  output.sum().backward();
  CHECK(runs == "first backward again ");
  const at::Tensor twin = at::ones({3}).requires_grad_();
  twin.sin().cos().exp().sum().backward();
  CHECK(at::equal(input.grad(), twin.grad()));
}

TEST_CASE("a backward that is run twice runs the unit twice again") {
  int runs = 0;
  const at::Tensor input = at::ones({3}).requires_grad_();
  const at::Tensor output = run_for_recompute(
                                [&](const units::Flow& flow, bool) -> units::Flow {
                                  ++runs;
                                  return {flow[0].sin().cos()};
                                },
                                {input})[0]
                                .sum();
  output.backward({}, /*retain_graph=*/true);
  const at::Tensor once = input.grad().clone();
  output.backward();
  CHECK(runs >= 2);
  CHECK(at::equal(input.grad(), 2 * once));
}

TEST_CASE("a unit that does not do the same again, or changes its input, is an error") {
  const at::Tensor input = at::ones({3}).requires_grad_();
  const at::Tensor less = run_for_recompute(
      [](const units::Flow& flow, bool again) -> units::Flow {
        return {again ? flow[0].sin() : flow[0].sin().cos()};
      },
      {input})[0];
  CHECK_THROWS_WITH(less.sum().backward(),
                    "recompute: a unit saved 2 tensors, and 1 when it ran again\n"
                    "  what a unit computes must depend on nothing but its input and the "
                    "generator");
  CHECK_THROWS_WITH(run_for_recompute([](const units::Flow& flow,
                                         bool) -> units::Flow { return {flow[0].mul_(2)}; },
                                      {at::ones({3})}),
                    "recompute: a unit changes its input in place\n"
                    "  it must leave it as it is, or not be run again");
}

TEST_CASE("what ran again goes as backward uses it") {
  constexpr std::int64_t kFloats = 1000, kBytes = 4 * kFloats;
  const auto meter = std::make_shared<units::MemoryMeter>(at::kCPU);
  const units::MemoryWatch watch(meter);
  const auto kept = [&meter] { return meter->live().of(MemoryKind::kActivations); };
  std::int64_t at_first = 0;
  const at::Tensor input = at::zeros({kFloats}).requires_grad_();
  const at::Tensor output = run_for_recompute(
      [&](const units::Flow& flow, bool again) -> units::Flow {
        const at::Tensor first = flow[0].exp();  // each of them saves what it gives
        if (!again) first.register_hook([&](const at::Tensor&) { at_first = kept(); });
        return {first.exp().exp()};
      },
      {input})[0];
  output.sum().backward();
  CHECK(at_first == kBytes);  // the others have been used
  CHECK(kept() == 0);
}

TEST_CASE("a recomputation that was interrupted starts again") {
  bool breaks = true;
  const at::Tensor input = at::ones({3}).requires_grad_(), twin = at::ones({3}).requires_grad_();
  const at::Tensor sum = run_for_recompute(
                             [&](const units::Flow& flow, bool again) -> units::Flow {
                               const at::Tensor half = flow[0].sin();
                               if (again && std::exchange(breaks, false)) {
                                 throw std::runtime_error("no memory");
                               }
                               return {half.cos()};
                             },
                             {input})[0]
                             .sum();
  CHECK_THROWS_WITH(sum.backward({}, /*retain_graph=*/true), "no memory");
  sum.backward();
  twin.sin().cos().sum().backward();
  CHECK(at::equal(input.grad(), twin.grad()));
}

TEST_CASE("a unit that takes gradients of its own cannot run again") {
  const at::Tensor input = at::ones({3}).requires_grad_();
  const at::Tensor output = run_for_recompute(
      [](const units::Flow& flow, bool again) -> units::Flow {
        const at::Tensor half = flow[0].exp();
        if (again) half.sum().backward();
        return {half.cos()};
      },
      {input})[0];
  CHECK_THROWS_WITH(output.sum().backward(), "recompute: a second run has no backward of its own");
}

TEST_CASE("units are chosen by their number or name, the last one never") {
  const auto chosen = [](const Recompute& recompute) {
    std::vector<units::Unit> units;
    for (const char* name : {"stem", "h.0", "h.1", "h.2", "head"}) {
      units.push_back(unit_of(name, [](at::Tensor tensor) { return tensor; }));
    }
    std::string text;
    for (const bool one : recomputed_units(recompute, units)) text += one ? '1' : '0';
    return text;
  };
  CHECK(chosen({.units = "none", .every = {}, .match = {}}) == "00000");
  CHECK(chosen(kAll) == "11110");
  CHECK(chosen(kSecond) == "10100");
  CHECK(chosen({.units = {}, .every = 3, .match = {}}) == "10010");
  CHECK(chosen({.units = {}, .every = {}, .match = {"h.*"}}) == "01110");
  CHECK(chosen({.units = {}, .every = {}, .match = {"stem", "h.2"}}) == "10010");
  CHECK(recomputed_units({}, {}).empty());

  CHECK(error_of_units({.units = {}, .every = {}, .match = {"h.*", "layer.*"}}, {"h.0", "head"}) ==
        "/recompute/match: no unit is named \"layer.*\"\n"
        "  the model has: h.0, head");
  CHECK(error_of_units(kAll, {"script"}) ==
        "/recompute: there is no unit to recompute before the last one\n"
        "  leave it out");
}

}  // namespace scaletrain::engine
