// Weights that ranks gather as bf16 against those that autocast makes bf16 copies of.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "lib/nn/layers/linear.h"
#include "lib/parallel/sharded.h"
#include "tests/dist/ranks.h"
#include "tests/engine/counting_allocator.h"
#include "tests/engine/one_rank.h"

namespace scaletrain::engine {
namespace {

using namespace std::chrono_literals;
using testing::CountingAllocator;

constexpr int kTypeRanks = 2;
constexpr int kTypeSteps = 2;

struct Types {
  bool gathers_bf16 = false, reduces_bf16 = false;
};

struct TypedCourse {
  double loss = 0;                       // the sum of the last step's
  bool is_fp32 = true;                   // its gradients
  std::vector<at::Tensor> gradients;     // whole, of the last step
  double parameters = 0, exchanged = 0;  // bytes
  double saved = 0;                      // when the last backward begins
};

recipe::Recipe typed_recipe() {
  recipe::Recipe recipe = testing::recipe_of_model("gpt2", {{"vocab_size", std::int64_t{50}},
                                                            {"positions", std::int64_t{8}},
                                                            {"dim", std::int64_t{256}},
                                                            {"depth", std::int64_t{8}},
                                                            {"heads", std::int64_t{4}}});
  recipe::choose(recipe.precision, *recipe::precisions().find("bf16"));
  return recipe;
}

// SGD's steps under autocast, of a batch for each of kTypeRanks data-parallel ranks.
TypedCourse train_with(const dist::Mesh& mesh, const Types& types) {
  CountingAllocator& allocator = CountingAllocator::install();
  const std::int64_t before = allocator.live();
  const recipe::Recipe recipe = typed_recipe();
  const auto model = nn::make_model(recipe.model, recipe.data.image_size, 1);
  const auto task = task::make_task(recipe, at::kCPU);
  const auto precision = precision::make_precision(recipe.precision, {.avx512 = true});
  model->train();
  TypedCourse course;
  parallel::ShardingOptions sharding;
  sharding.reduces_as_bf16 = types.reduces_bf16;
  for (const units::Unit& unit : model->units()) sharding.units.push_back(unit.tensors);
  std::map<std::string, std::vector<std::int64_t>> shapes;
  std::vector<units::NamedParameter> parameters;
  for (const auto& item : model->named_parameters()) {
    parameters.push_back({.name = item.key(), .tensor = item.value()});
    shapes[item.key()] = item.value().sizes().vec();
    course.parameters += static_cast<double>(item.value().nbytes());
  }
  for (const auto& module : model->named_modules()) {
    if (!types.gathers_bf16 || dynamic_cast<nn::Linear*>(module.value().get()) == nullptr) continue;
    for (const auto& item : module.value()->named_parameters(/*recurse=*/false)) {
      sharding.gathered_as_bf16.insert(module.key() + "." + item.key());
    }
  }
  const auto placement = parallel::make_placement(std::move(parameters), mesh, sharding);
  Engine engine({*model, *task, *precision, *placement, mesh}, /*seed=*/3, {});
  placement->start({});
  for (int step = 0; step < kTypeSteps; ++step) {
    std::vector<task::Example> examples;
    for (int block = 0; block < kTypeRanks; ++block) {
      if (block % mesh.plan().readers() != mesh.reader()) continue;
      examples.push_back(testing::example_of(recipe, 2, 10 * step + block + 1));
    }
    testing::SameBatches batches(examples);
    const double weight = 0.02 * mesh.plan().readers();
    engine.run(step, batches, at::full({}, weight), [&](const at::Tensor& sum) {
      const at::Tensor all = sum.clone();
      mesh.data().all_reduce_sum(all, "loss").wait();
      course.loss = all.item<double>();
      course.saved = static_cast<double>(allocator.live() - before);
    });
    const at::NoGradGuard no_grad;
    if (step + 1 == kTypeSteps) break;
    for (const units::NamedParameter& one : engine.owned()) {
      one.tensor.detach().sub_(one.tensor.grad() * 0.5);
    }
    engine.weights_changed();
  }
  course.exchanged = static_cast<double>(placement->exchanged_bytes());
  std::map<std::string, at::Tensor> whole;
  for (const auto& [name, shape] : shapes) whole[name] = at::zeros(shape);
  for (const units::NamedParameter& one : engine.owned()) {
    const at::Tensor& gradient = one.tensor.grad();
    course.is_fp32 = course.is_fp32 && gradient.scalar_type() == at::kFloat;
    whole.at(one.name).view({-1}).narrow(0, one.begin, gradient.numel()).copy_(gradient.view({-1}));
  }
  for (auto& [name, gradient] : whole) {
    mesh.group(core::Axis::kShard).all_reduce_sum(gradient, "test").wait();
    course.gradients.push_back(gradient);
  }
  return course;
}

// Over each tensor's largest number.
double largest_difference(const TypedCourse& one, const TypedCourse& other) {
  double error = 0;
  for (std::size_t i = 0; i < one.gradients.size(); ++i) {
    const double size = std::max(other.gradients[i].abs().max().item<double>(), 1e-4);
    const double off = (one.gradients[i] - other.gradients[i]).abs().max().item<double>();
    error = std::max(error, off / size);
  }
  return error;
}

TEST_CASE("weights gathered as bf16 are those of autocast, in less memory and fewer bytes") {
  const auto results = testing::run_ranks(
      {.world_size = kTypeRanks, .limit_s = 200}, [](const core::WorkerEnv& env) -> std::string {
        at::set_num_threads(1);
        dist::Group nobody({}, at::kCPU, 1s);
        const TypedCourse single = train_with(dist::Mesh(nobody, core::MeshPlan(1)), {});
        dist::Group world(env, at::kCPU, 60s);
        core::MeshSizes sizes;
        sizes.shard = kTypeRanks;
        const dist::Mesh mesh(world, core::MeshPlan(kTypeRanks, sizes));
        const TypedCourse plain = train_with(mesh, {});
        const TypedCourse narrow = train_with(mesh, {.gathers_bf16 = true});
        const TypedCourse reduced = train_with(mesh, {.gathers_bf16 = true, .reduces_bf16 = true});
        std::string wrong;
        const auto check = [&](bool holds, const char* what, double number) {
          if (!holds) wrong += fmt::format("{}: {:.4g}; ", what, number);
        };
        check(reduced.is_fp32 && narrow.is_fp32, "gradients of another type", 0);
        check(narrow.loss == plain.loss, "another loss than autocast's", narrow.loss / plain.loss);
        const double own = largest_difference(narrow, plain);
        check(own == 0, "other gradients than autocast's", own);
        // Of a sum of two ranks' gradients in another order than one process adds up micro-batches.
        const double off = largest_difference(narrow, single);
        check(off < 1e-2, "other gradients than one process'", off);
        check(std::abs(narrow.loss / single.loss - 1) < 1e-3, "another loss", narrow.loss);
        const double rounded = largest_difference(reduced, narrow);
        check(rounded > 0 && rounded < 1.0 / 64, "rounded sums", rounded);
        // Autocast keeps a bf16 copy of each weight for backward.
        const double saved = (plain.saved - narrow.saved) / plain.parameters;
        check(saved > 0.49 && saved < 0.5, "memory saved, over the parameters", saved);
        const double sums = 2 * (narrow.exchanged - reduced.exchanged);  // as fp32
        check(std::abs(sums / (kTypeSteps * plain.parameters) - 1) < 0.01, "bytes of sums", sums);
        // Norms and embeddings stay fp32.
        const double gathered = (narrow.exchanged - sums) / (plain.exchanged - sums);
        check(gathered > 0.5 && gathered < 0.52, "bytes gathered", gathered);
        return wrong;
      });
  for (const auto& result : results) CHECK(result.text == "");
}

}  // namespace
}  // namespace scaletrain::engine
