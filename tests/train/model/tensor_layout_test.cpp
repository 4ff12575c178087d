// Tensor parallel models against the whole model in one process: layout x model x option, a line
// each.
#include "lib/train/model/tensor_layout.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/text/hash.h"
#include "lib/nn/layers/dropout.h"
#include "lib/train/model/learner.h"
#include "tests/dist/ranks.h"
#include "tests/engine/one_rank.h"
#include "tests/long_form.h"
#include "tests/train/slice_support.h"

namespace scaletrain::train::tensor_layout_test {
namespace {

using namespace std::chrono_literals;
using core::Axis;
using testing::run_ranks;

using Options = std::map<std::string, recipe::Component::Value>;
using Integer = std::int64_t;

constexpr int kRanks = 4;
constexpr std::int64_t kSteps = 3;
constexpr double kWeight = 0.02, kLr = 0.05;
constexpr double kMost = 1e-5;

// 11 tokens are no multiple of 2 or 4.
const Options kGpt2{{"vocab_size", Integer{11}}, {"positions", Integer{8}}, {"dim", Integer{16}},
                    {"depth", Integer{3}},       {"heads", Integer{4}},     {"dropout", 0.0}};
const Options kLlama{{"vocab_size", Integer{11}}, {"positions", Integer{8}},
                     {"dim", Integer{32}},        {"depth", Integer{3}},
                     {"heads", Integer{8}},       {"kv_heads", Integer{4}},
                     {"hidden", Integer{24}}};
// 16 patches of 32 x 32 images.
const Options kVit{{"patch_size", Integer{8}}, {"dim", Integer{16}}, {"depth", Integer{3}},
                   {"heads", Integer{4}},      {"mlp_ratio", 2.0},   {"layer_scale", 0.5}};

Options with(Options options, const Options& more) {
  for (const auto& [key, value] : more) options[key] = value;
  return options;
}

struct Case {
  const char* name;
  const char* model;
  Options options;
  int tensor = 2;  // of four ranks; the others are replicas
  bool sequence = false;
  std::int64_t chunk = 0;
};

std::vector<Case> cases() {
  const Options tied{{"tied", true}}, apart{{"tied", false}};
  const Options mean{{"pool", std::string("avg")}};
  std::vector<Case> result;
  for (const int tensor : {2, 4}) {
    for (const bool sequence : {false, true}) {
      result.push_back({"gpt2", "gpt2", kGpt2, tensor, sequence});
      result.push_back({"gpt2 in chunks", "gpt2", kGpt2, tensor, sequence, 3});
      result.push_back({"llama", "llama", with(kLlama, apart), tensor, sequence});
      result.push_back({"llama, tied", "llama", with(kLlama, tied), tensor, sequence});
      result.push_back({"vit of means", "vit_tiny", with(kVit, mean), tensor, sequence});
    }
    result.push_back({"vit", "vit_tiny", kVit, tensor});
  }
  return result;
}

recipe::Recipe recipe_of(const Case& one) {
  recipe::Recipe recipe = testing::recipe_of_model(one.model, one.options);
  recipe.seed = 1;
  recipe.data.context = 8;
  recipe.loss.chunk = one.chunk;
  recipe.loss.label_smoothing = 0.1;
  recipe.parallel.tensor = one.tensor;
  recipe.parallel.sequence = one.sequence;
  return recipe;
}

// This rank's part of a recipe's model, as build_run() lays it out.
struct OnMesh {
  OnMesh(const recipe::Recipe& recipe, const dist::Mesh& given)
      : mesh(given),
        task(task::make_task(recipe, at::kCPU)),
        learner(build_learner(recipe, at::kCPU, {.steps_per_epoch = 1, .total_steps = 1}, 1,
                              nn::built_in_factories(), &mesh)),
        placement(parallel::make_placement(learner.parameters(), mesh)),
        engine({*learner.model, *task, *learner.precision, *placement, mesh, nullptr,
                units_of_part(recipe, mesh, {learner.model, learner.parts}, *task)},
               recipe.seed, {.recompute = recipe.recompute, .chunk = recipe.loss.chunk}) {
    learner.model->train();
    placement->start({});
  }

  // The sum of the losses of this rank's batches.
  double step(std::int64_t step, const std::vector<task::Example>& examples, double weight) {
    testing::SameBatches batches(examples);
    double loss = 0;
    engine.run(step, batches, at::full({}, weight),
               [&loss](const at::Tensor& sum) { loss = sum.item<double>(); });
    return loss;
  }

  void descend() {
    const at::NoGradGuard no_grad;
    for (const units::NamedParameter& one : engine.owned()) {
      at::Tensor(one.tensor).sub_(one.tensor.grad(), kLr);
    }
  }

  const dist::Mesh& mesh;
  std::unique_ptr<task::Task> task;
  Learner learner;
  std::unique_ptr<parallel::Placement> placement;
  engine::Engine engine;
};

double distance(const at::Tensor& a, const at::Tensor& b, const at::Tensor& scale) {
  if (a.sizes() != b.sizes()) return 1;
  return (a - b).abs().max().item<double>() / std::max(scale.abs().max().item<double>(), 1e-12);
}

// Of gradients of what each rank of a tensor group has all of.
std::uint64_t digest_of_shared(const OnMesh& run) {
  std::uint64_t digest = 0;
  for (const units::NamedParameter& one : run.engine.owned()) {
    if (run.learner.parts.contains(one.name)) continue;
    const at::Tensor gradient = one.tensor.grad().contiguous();
    digest = core::xxh3_64(
        std::string_view(static_cast<const char*>(gradient.const_data_ptr()), gradient.nbytes()),
        digest);
  }
  return digest;
}

// "" where it is as on one rank, otherwise what is not.
std::string compare(OnMesh& part, OnMesh& whole, double own_loss, double whole_loss, int step) {
  std::string wrong;
  const auto look = [&](const std::string& what, double off) {
    if (off > kMost) wrong += fmt::format("step {}: {} is off by {:.1e}; ", step, what, off);
  };
  look("the loss", std::abs(own_loss - whole_loss) / whole_loss);
  const double norm = part.engine.squared_norm().sqrt().item<double>();
  const double of_whole = whole.engine.squared_norm().sqrt().item<double>();
  look("the norm", std::abs(norm - of_whole) / of_whole);
  const auto& expected = whole.engine.owned();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const units::NamedParameter& own = part.engine.owned()[i];
    const at::Tensor all = expected[i].tensor.grad();
    const auto cut = part.learner.parts.find(own.name);
    const bool is_cut = cut != part.learner.parts.end();
    look(own.name, distance(own.tensor.grad(),
                            is_cut ? testing::slice_as(all, cut->second, own.tensor) : all, all));
    if (own.shape() != all.sizes().vec()) wrong += own.name + " has another shape; ";
  }
  return wrong;
}

// The examples of one data-parallel rank.
std::vector<task::Example> examples_of(const recipe::Recipe& recipe, int reader) {
  recipe::Recipe read = recipe;
  return {testing::example_of(read, 2, static_cast<std::uint64_t>(10 + reader))};
}

// This rank alone.
struct Alone {
  dist::Group group{core::WorkerEnv(), at::kCPU, 1s};
  dist::Mesh mesh{group, core::MeshPlan(1)};
};

std::string against_one_rank(const Case& one, const dist::Mesh& mesh) {
  const recipe::Recipe recipe = recipe_of(one);
  const Alone alone;
  recipe::Recipe undivided = recipe;
  undivided.parallel = {};
  OnMesh part(recipe, mesh), whole(undivided, alone.mesh);
  const int readers = part.mesh.plan().readers();
  std::vector<task::Example> all;
  for (int reader = 0; reader < readers; ++reader) {
    const auto examples = examples_of(recipe, reader);
    all.insert(all.end(), examples.begin(), examples.end());
  }
  std::string said;
  for (int step = 0; step < kSteps; ++step) {
    const at::Tensor loss = at::full(
        {}, part.step(step, examples_of(recipe, part.mesh.reader()), kWeight), at::kDouble);
    const double whole_loss = whole.step(step, all, kWeight / readers);
    part.mesh.data().all_reduce_sum(loss, "loss").wait();
    if (step == 0 || step + 1 == kSteps) {
      said += compare(part, whole, loss.item<double>(), whole_loss, step);
    }
    if (step + 1 < kSteps) part.descend();
    whole.descend();
  }
  const std::string digest = fmt::format("{:x}", digest_of_shared(part));
  dist::Group& tensors = part.mesh.group(Axis::kTensor);
  if (tensors.broadcast_text(digest, 0, "digest") != digest) said += "shared gradients differ; ";
  return said;
}

TEST_CASE(
    "ranks that share a model have its gradients, norm and loss, at the first and third step") {
  const auto results = run_ranks(
      {.world_size = kRanks, .limit_s = 400}, [](const core::WorkerEnv& env) -> std::string {
        at::set_num_threads(1);
        dist::Group world(env, at::kCPU, 60s);
        dist::Mesh by_2(
            world, core::MeshPlan(kRanks, {.pipe = 1, .replica = {}, .shard = 1, .tensor = 2}));
        const dist::Mesh by_4(
            world, core::MeshPlan(kRanks, {.pipe = 1, .replica = {}, .shard = 1, .tensor = 4}));
        std::string text;
        for (const Case& one : testing::every_second(cases(), 0)) {
          const std::string wrong = against_one_rank(one, one.tensor == 2 ? by_2 : by_4);
          if (wrong.empty()) continue;
          text += fmt::format("{} by {}{}: {}\n", one.name, one.tensor,
                              one.sequence ? " with sequence" : "", wrong);
        }
        by_2.end("the end");
        return text;
      });
  for (const auto& result : results) {
    CHECK(result.text.empty());
    CHECK(result.status == 0);
    if (!result.text.empty()) MESSAGE(result.text);
  }
}

// Cases with dropout, where it is cut and where it is not.
std::vector<Case> cases_that_draw() {
  const Options text = with(kGpt2, {{"dropout", 0.3}});
  const Options images =
      with(kVit, {{"dropout", 0.3}, {"drop_path", 0.3}, {"pool", std::string("avg")}});
  return {{"gpt2", "gpt2", text, 2},
          {"gpt2", "gpt2", text, 2, true},
          {"vit", "vit_tiny", images, 2},
          {"vit", "vit_tiny", images, 2, true}};
}

// The gradients of two steps.
std::vector<at::Tensor> gradients_of(const recipe::Recipe& recipe, const dist::Mesh& mesh,
                                     std::string& said) {
  OnMesh part(recipe, mesh);
  std::vector<at::Tensor> result;
  for (int step = 0; step < 2; ++step) {
    part.step(step, examples_of(recipe, part.mesh.reader()), kWeight);
    for (const at::Tensor& gradient : part.engine.gradients()) result.push_back(gradient.clone());
    part.descend();
  }
  const std::string digest = fmt::format("{:x}", digest_of_shared(part));
  dist::Group& tensors = part.mesh.group(Axis::kTensor);
  if (tensors.broadcast_text(digest, 0, "digest") != digest) said += "shared gradients differ; ";
  return result;
}

TEST_CASE("with dropout ranks agree on what they share, and recomputation changes no bit") {
  const auto results =
      run_ranks({.world_size = 2, .limit_s = 200}, [](const core::WorkerEnv& env) -> std::string {
        at::set_num_threads(1);
        dist::Group world(env, at::kCPU, 60s);
        dist::Mesh mesh(world,
                        core::MeshPlan(2, {.pipe = 1, .replica = {}, .shard = 1, .tensor = 2}));
        std::string text;
        for (const Case& one : cases_that_draw()) {
          recipe::Recipe recipe = recipe_of(one);
          std::string wrong;
          const auto plain = gradients_of(recipe, mesh, wrong);
          recipe.recompute.emplace().units = "all";
          const auto again = gradients_of(recipe, mesh, wrong);
          if (!std::equal(plain.begin(), plain.end(), again.begin(), again.end(),
                          [](const auto& a, const auto& b) { return a.equal(b); })) {
            wrong += "recomputed gradients differ; ";
          }
          if (!wrong.empty()) text += fmt::format("{} {}: {}", one.name, one.sequence, wrong);
        }
        mesh.end("the end");
        return text;
      });
  for (const auto& result : results) {
    CHECK(result.text == "");
    CHECK(result.status == 0);
  }
}

TEST_CASE("ranks draw different numbers for divided positions and equal ones otherwise") {
  const Case one{"gpt2", "gpt2", with(kGpt2, {{"dropout", 0.5}})};
  for (const auto& result : run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
         at::set_num_threads(1);
         dist::Group world(env, at::kCPU, 60s);
         dist::Mesh mesh(world,
                         core::MeshPlan(2, {.pipe = 1, .replica = {}, .shard = 1, .tensor = 2}));
         std::string text;
         for (const bool sequence : {false, true}) {
           recipe::Recipe recipe = recipe_of(one);
           recipe.parallel.sequence = sequence;
           const OnMesh part(recipe, mesh);
           int layers = 0, apart = 0;
           for (const auto& module : part.learner.model->modules()) {
             const auto* const dropout = dynamic_cast<const nn::Dropout*>(module.get());
             if (dropout == nullptr) continue;
             at::manual_seed(5);
             const at::Tensor own = dropout->forward(at::ones({64}));
             const at::Tensor first = own.clone();
             world.broadcast(first, 0, "what rank 0 draws").wait();
             ++layers;
             apart += world.rank() == 1 && !at::equal(own, first) ? 1 : 0;
           }
           text += fmt::format("{} of {} apart; ", apart, layers);
         }
         mesh.end("the end");
         return fmt::format("rank {}: {}", env.rank, text);
       })) {
    const bool is_first = result.text.starts_with("rank 0");
    CHECK(result.text == (is_first ? "rank 0: 0 of 6 apart; 0 of 6 apart; "
                                   : "rank 1: 0 of 6 apart; 6 of 6 apart; "));
  }
}

TEST_CASE("a model without a plan is refused") {
  for (const auto& result :
       run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) -> std::string {
         dist::Group world(env, at::kCPU, 60s);
         dist::Mesh mesh(world,
                         core::MeshPlan(2, {.pipe = 1, .replica = {}, .shard = 1, .tensor = 2}));
         std::string said = "made";
         try {
           make_part(testing::recipe_of_model("mlp"), &mesh, nn::built_in_factories());
         } catch (const core::RecipeError& error) {
           said = error.what();
         }
         mesh.end("the end");
         return said;
       })) {
    CHECK(result.text ==
          "/parallel/tensor: mlp has no tensor-parallel plan\n"
          "  use another model, such as gpt2, llama or vit_base, or leave out /parallel/tensor");
  }
}

}  // namespace
}  // namespace scaletrain::train::tensor_layout_test
