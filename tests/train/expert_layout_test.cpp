// Experts over several ranks against one process that has all of them: layout x option, a line
// each.
#include "lib/train/expert_layout.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "lib/train/learner.h"
#include "tests/dist/ranks.h"
#include "tests/engine/one_rank.h"

namespace scaletrain::train {
namespace {

using namespace std::chrono_literals;
using parallel::ShardLevel;
using Options = std::map<std::string, recipe::Component::Value>;
using Integer = std::int64_t;

constexpr int kSteps = 5;
constexpr double kLr = 0.05, kMost = 1e-5;

struct Case {
  const char* name;
  Options options = {};
  std::int64_t micro_steps = 1;
  bool recomputes = false;
  bool is_skewed = false;  // all tokens go to the first experts
};

std::vector<Case> cases() {
  return {{.name = "dropless, balanced by a loss", .options = {{"router_aux_loss", 0.5}}},
          {.name = "with a capacity, accumulated",
           .options = {{"router_aux_loss", 0.5}, {"capacity_factor", 1.1}},
           .micro_steps = 2},
          {.name = "balanced by a bias, recomputed",
           .options = {{"router_aux_loss", 0.0}, {"router_bias_rate", 0.01}},
           .recomputes = true},
          {.name = "all to one expert",
           .options = {{"router_bias_rate", 0.01}, {"experts_per_token", Integer{1}}},
           .is_skewed = true}};
}

struct Layout {
  const char* name;
  int ranks;
  core::MeshSizes sizes;
  ShardLevel level = ShardLevel::kParameters;
  dist::CpuExchange exchange = dist::CpuExchange::kAuto;
};

std::vector<Layout> layouts() {
  return {{"expert 2", 2, {.replica = {}, .expert = 2}},
          {"expert 2 over the network",
           2,
           {.replica = {}, .expert = 2},
           ShardLevel::kParameters,
           dist::CpuExchange::kGloo},
          {"expert 4", 4, {.replica = {}, .expert = 4}},
          {"expert 2 of 4 ranks", 4, {.replica = {}, .expert = 2}},
          {"expert 2 x shard 2, optimizer",
           4,
           {.replica = {}, .shard = 2, .expert = 2},
           ShardLevel::kOptimizer},
          {"expert 2 x shard 2, gradients",
           4,
           {.replica = {}, .shard = 2, .expert = 2},
           ShardLevel::kGradients},
          {"expert 4 x shard 2, parameters", 4, {.replica = {}, .shard = 2, .expert = 4}},
          {"shard 2 with all experts, parameters", 2, {.replica = {}, .shard = 2}},
          {"shard 2 with all experts, optimizer",
           2,
           {.replica = {}, .shard = 2},
           ShardLevel::kOptimizer}};
}

recipe::Recipe recipe_of(const Case& one) {
  recipe::Recipe recipe = testing::recipe_of_model("mixtral", {{"vocab_size", Integer{11}},
                                                               {"positions", Integer{16}},
                                                               {"dim", Integer{16}},
                                                               {"depth", Integer{3}},
                                                               {"heads", Integer{4}},
                                                               {"hidden", Integer{24}},
                                                               {"experts", Integer{4}}});
  for (const auto& [key, value] : one.options) recipe.model.options.at(key) = value;
  recipe.seed = 1;
  recipe.data.context = 16;
  if (one.recomputes)
    recipe.recompute = recipe::Recompute{.units = "all", .every = {}, .match = {}};
  return recipe;
}

// A model of a case on a mesh, as build_run() lays it out.
class Job {
 public:
  Job(const Case& one, const dist::Mesh& mesh, ShardLevel level)
      : case_(one),
        recipe_(recipe_of(one)),
        mesh_(mesh),
        task_(task::make_task(recipe_, at::kCPU)),
        learner_(build_learner(recipe_, at::kCPU, {.steps_per_epoch = 1, .total_steps = 1}, 1)) {
    nn::Model& model = *learner_.model;
    if (one.is_skewed) {
      for (const auto& item : model.named_buffers()) item.value()[0].fill_(100);
    }
    for (const auto& item : model.named_parameters()) {
      shapes_[item.key()] = item.value().sizes().vec();
    }
    parallel::Sharding sharding{.level = level};
    for (const units::Unit& unit : model.units()) sharding.units.push_back(unit.tensors);
    at::Tensor idle_input;
    if (mesh.plan().experts() > 1) {
      placement_ = std::make_unique<parallel::ExpertParallel>(
          learner_.parameters(), mesh, divide_experts(model, mesh), sharding);
      idle_input = idle_tokens(mesh);
    } else {
      placement_ = parallel::make_placement(learner_.parameters(), mesh, sharding);
    }
    engine_ = std::make_unique<engine::Engine>(
        engine::EngineParts{.model = model,
                            .task = *task_,
                            .precision = *learner_.precision,
                            .placement = *placement_,
                            .mesh = mesh,
                            .idle_input = idle_input},
        /*seed=*/3, engine::MemorySavings{.recompute = recipe_.recompute});
    model.train();
    placement_->start({});
  }

  // This rank's of the `all` micro-batches of each micro-step.
  void step(int step, std::int64_t all) {
    const int readers = mesh_.plan().readers();
    std::vector<task::Example> examples;
    for (std::int64_t block = 0; block < case_.micro_steps * all; ++block) {
      if (block % readers == mesh_.reader()) examples.push_back(example(step, block));
    }
    testing::SameBatches batches(examples);
    engine_->run(step, batches, at::full({}, 0.02 * readers / static_cast<double>(all)),
                 [&](const at::Tensor& sum) {
                   loss = sum.clone();
                   mesh_.data().all_reduce_sum(loss, "loss").wait();
                 });
    norm = engine_->squared_norm().sqrt().item<double>();
  }

  // The model's statistics of the step.
  at::Tensor update() {
    const at::NoGradGuard no_grad;
    for (const units::NamedParameter& one : engine_->owned()) {
      one.tensor.detach().sub_(one.tensor.grad(), kLr);
    }
    engine_->weights_changed();
    return engine_->end_step(at::zeros({}));
  }

  // Whole, by name, on each rank.
  std::map<std::string, at::Tensor> gradients() const {
    std::map<std::string, at::Tensor> result;
    for (const auto& [name, shape] : shapes_) result[name] = at::zeros(shape);
    for (const units::NamedParameter& one : engine_->owned()) {
      const at::Tensor gradient = one.tensor.grad().reshape({-1});
      if (!one.counts) continue;
      result.at(one.name).view({-1}).narrow(0, one.begin, gradient.numel()).copy_(gradient);
    }
    for (auto& [name, gradient] : result) mesh_.model().all_reduce_sum(gradient, "test").wait();
    return result;
  }

  // The sums of two batches, of which alone a rank has both, and of four ranks two have none.
  at::Tensor evaluate() {
    const at::NoGradGuard no_grad;
    at::Tensor sums = at::zeros({task_->sum_count()}, at::kDouble);
    learner_.model->eval();
    const dist::Group& world = mesh_.world();
    for (int batch = world.rank(); batch < 2; batch += world.world_size()) {
      sums.add_(engine_->evaluate(example(100, batch)).sums);
    }
    if (world.rank() >= 2 && engine_->runs_with_others()) engine_->accompany();
    learner_.model->train();
    mesh_.world().all_reduce_sum(sums, "sums").wait();
    return sums;
  }

  // Bytes of the model's parameters.
  std::int64_t bytes() const {
    std::size_t bytes = 0;
    for (const at::Tensor& parameter : learner_.model->parameters()) {
      bytes += parameter.storage().nbytes();
    }
    return static_cast<std::int64_t>(bytes);
  }

  at::Tensor loss;
  double norm = 0;

 private:
  task::Example example(int step, std::int64_t block) const {
    return testing::example_of(recipe_, 2, static_cast<std::uint64_t>(1000 * step + block));
  }

  Case case_;
  recipe::Recipe recipe_;
  const dist::Mesh& mesh_;
  std::unique_ptr<task::Task> task_;
  Learner learner_;
  std::map<std::string, std::vector<std::int64_t>> shapes_;
  std::unique_ptr<parallel::Placement> placement_;
  std::unique_ptr<engine::Engine> engine_;
};

// What a training gives: loss, norm, statistics and gradients of the first and the last step, and
// an evaluation after it.
struct Course {
  std::vector<double> numbers;
  std::vector<at::Tensor> gradients;

  void add(const at::Tensor& values) {
    const at::Tensor flat = values.to(at::kDouble).reshape({-1});
    for (std::int64_t i = 0; i < flat.numel(); ++i) numbers.push_back(flat[i].item<double>());
  }
};

Course course_of(Job& job, std::int64_t all) {
  Course course;
  for (int step = 0; step < kSteps; ++step) {
    job.step(step, all);
    const bool is_seen = step == 0 || step + 1 == kSteps;
    if (is_seen) {
      course.add(job.loss);
      course.numbers.push_back(job.norm);
      for (const auto& [name, gradient] : job.gradients()) course.gradients.push_back(gradient);
    }
    const at::Tensor statistics = job.update();
    if (is_seen) course.add(statistics);
  }
  course.add(job.evaluate());
  return course;
}

double largest_error(const Course& one, const Course& other) {
  if (one.numbers.size() != other.numbers.size()) return 1;
  double error = 0;
  for (std::size_t i = 0; i < one.numbers.size(); ++i) {
    const double size = std::max(std::abs(other.numbers[i]), 1e-3);
    error = std::max(error, std::abs(one.numbers[i] - other.numbers[i]) / size);
  }
  for (std::size_t i = 0; i < one.gradients.size(); ++i) {
    const double size = std::max(other.gradients[i].abs().max().item<double>(), 1e-4);
    const double off = (one.gradients[i] - other.gradients[i]).abs().max().item<double>();
    error = std::max(error, off / size);
  }
  return error;
}

}  // namespace

TEST_CASE("ranks that share experts train as one process does that has all of them") {
  for (const Layout& layout : layouts()) {
    CAPTURE(std::string(layout.name));
    const auto results = testing::run_ranks(
        {.world_size = layout.ranks, .limit_s = 300}, [&](const core::WorkerEnv& env) {
          at::set_num_threads(1);
          dist::Group alone({}, at::kCPU, 1s);
          const dist::Mesh no_mesh(alone, core::MeshPlan(1));
          dist::Group world(env, at::kCPU, 60s, core::Beat(), {}, layout.exchange);
          const dist::Mesh mesh(world, core::MeshPlan(layout.ranks, layout.sizes));
          std::string wrong;
          for (const Case& one : cases()) {
            Job single(one, no_mesh, layout.level);
            const Course expected = course_of(single, mesh.plan().readers());
            Job job(one, mesh, layout.level);
            const double error = largest_error(course_of(job, mesh.plan().readers()), expected);
            if (!(error < kMost)) wrong += fmt::format("{}: {:.2g}\n", one.name, error);
            world.barrier("the next case");
          }
          return wrong;
        });
    for (const auto& result : results) CHECK(result.text == "");
  }
}

TEST_CASE("each rank has memory for its experts alone") {
  const Case one{.name = ""};
  // Three blocks of four experts, each three matrices of 16 x 24 numbers.
  constexpr std::int64_t kExpertBytes = 3 * 3 * 16 * 24 * 4;
  std::int64_t all = 0;
  for (const int ranks : {1, 2, 4}) {
    const auto results = testing::run_ranks({.world_size = ranks}, [&](const core::WorkerEnv& env) {
      dist::Group world(ranks == 1 ? core::WorkerEnv{} : env, at::kCPU, 60s);
      const dist::Mesh mesh(world, core::MeshPlan(ranks, {.replica = {}, .expert = ranks}));
      return std::to_string(Job(one, mesh, ShardLevel::kParameters).bytes());
    });
    for (const auto& result : results) {
      if (ranks == 1) all = std::stoll(result.text);
      CHECK(std::stoll(result.text) == all - kExpertBytes * (4 - 4 / ranks));
    }
  }
}

TEST_CASE("a rank that is lost on the way to the experts ends the others within seconds, named") {
  for (const dist::CpuExchange exchange : {dist::CpuExchange::kShm, dist::CpuExchange::kGloo}) {
    CAPTURE(static_cast<int>(exchange));
    const auto results =
        testing::run_ranks({.world_size = 4}, [&](const core::WorkerEnv& env) -> std::string {
          at::set_num_threads(1);
          const Case one{.name = ""};
          dist::Group world(env, at::kCPU, 60s, core::Beat(), {}, exchange);
          const dist::Mesh mesh(world, core::MeshPlan(4, {.replica = {}, .expert = 4}));
          Job job(one, mesh, ShardLevel::kParameters);
          job.step(0, 4);
          if (env.rank == 3) std::raise(SIGKILL);
          job.step(1, 4);
          return "went on";
        });
    for (int rank = 0; rank < 3; ++rank) {
      CHECK(results[rank].text.starts_with(fmt::format(
          "rank {}: collective \"how many tokens experts get\" was not completed: a peer was lost",
          rank)));
      CHECK(results[rank].status == 75);
      CHECK(results[rank].seconds < 10);
    }
  }
}

TEST_CASE("a model without experts is refused, and a number that ranks cannot share") {
  const auto results =
      testing::run_ranks({.world_size = 3}, [](const core::WorkerEnv& env) -> std::string {
        dist::Group world(env, at::kCPU, 60s);
        const dist::Mesh mesh(world, core::MeshPlan(3, {.replica = {}, .expert = 3}));
        std::string text;
        for (const recipe::Recipe& recipe :
             {testing::recipe_of_model("mlp"), recipe_of({.name = ""})}) {
          try {
            divide_experts(*nn::make_model(recipe.model, 32, 1), mesh);
          } catch (const core::RecipeError& error) {
            text += error.found() + "\n";
          }
        }
        return text;
      });
  for (const auto& result : results) {
    CHECK(result.text == "the model has no experts\n3 ranks cannot share 4 experts evenly\n");
  }
}

}  // namespace scaletrain::train
