// Experts over several ranks against one process that has all of them: layout x option, a line
// each.
#include "lib/train/model/expert_layout.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/dist/ranks.h"
#include "tests/engine/course.h"
#include "tests/long_form.h"
#include "tests/train/mixture_job.h"

namespace scaletrain::train {
namespace {

using namespace std::chrono_literals;
using Case = testing::MixtureCase;
using Job = testing::MixtureJob;
using Integer = std::int64_t;
using testing::Course;

constexpr int kSteps = 2;
constexpr double kMost = 1e-5;

const std::vector<Case>& cases() {
  static const std::vector<Case> cases{
      {.name = "dropless, balanced by a loss", .options = {{"router_aux_loss", 0.5}}},
      {.name = "with a capacity, in chunks",
       .options = {{"router_aux_loss", 0.5}, {"capacity_factor", 1.1}, {"tied", false}},
       .chunk = 7},
      {.name = "balanced by a bias, recomputed",
       .options = {{"router_aux_loss", 0.0}, {"router_bias_rate", 0.01}},
       .recomputes = true},
      {.name = "all to one expert",
       .options = {{"router_bias_rate", 0.01}, {"experts_per_token", Integer{1}}},
       .is_skewed = true}};
  return cases;
}

struct Layout {
  const char* name;
  int ranks;
  recipe::Parallel parallel;
  dist::CpuExchange exchange = dist::CpuExchange::kAuto;

  bool takes(const Case& one) const {
    const bool drops = one.options.contains("capacity_factor");
    return !(drops && parallel.context > 1) &&
           !(one.recomputes && parallel.schedule == "zero_bubble");
  }
};

struct Axes {
  int pipeline = 1, shard = 1, context = 1, tensor = 1, expert = 1;
};

recipe::Parallel parallel_of(const Axes& axes, const char* level = "parameters",
                             const char* schedule = "1f1b", bool sequence = false) {
  recipe::Parallel parallel;
  parallel.pipeline = axes.pipeline;
  parallel.shard = axes.shard;
  parallel.context = axes.context;
  parallel.tensor = axes.tensor;
  parallel.expert = axes.expert;
  parallel.shard_level = level;
  parallel.schedule = schedule;
  parallel.sequence = sequence;
  return parallel;
}

std::vector<Layout> layouts() {
  const auto sequence = [](const Axes& axes, const char* level = "parameters",
                           const char* schedule = "1f1b") {
    return parallel_of(axes, level, schedule, /*sequence=*/true);
  };
  const auto pipeline = [](Axes axes, const char* schedule) {
    axes.pipeline = 2;
    return parallel_of(axes, "parameters", schedule);
  };
  return {{"expert 2", 2, parallel_of({.expert = 2})},
          {"expert 2 over the network", 2, parallel_of({.expert = 2}), dist::CpuExchange::kGloo},
          {"expert 4", 4, parallel_of({.expert = 4})},
          {"expert 2 of 4 ranks", 4, parallel_of({.expert = 2})},
          {"expert 2 x shard 2, optimizer", 4, parallel_of({.shard = 2, .expert = 2}, "optimizer")},
          {"expert 2 x shard 2, gradients", 4, parallel_of({.shard = 2, .expert = 2}, "gradients")},
          {"expert 4 x shard 2", 4, parallel_of({.shard = 2, .expert = 4})},
          {"shard 2 with all experts", 2, parallel_of({.shard = 2})},
          {"shard 2 with all experts, optimizer", 2, parallel_of({.shard = 2}, "optimizer")},
          {"tensor 2 with all experts", 4, parallel_of({.tensor = 2})},
          {"sequence 2 with all experts", 2, sequence({.tensor = 2})},
          {"expert 2 x tensor 2", 4, parallel_of({.tensor = 2, .expert = 2})},
          {"expert 2 x sequence 2", 4, sequence({.tensor = 2, .expert = 2})},
          {"expert 2 x shard 2 x tensor 2", 4,
           parallel_of({.shard = 2, .tensor = 2, .expert = 2}, "gradients")},
          {"expert 4 x shard 2 x sequence 2", 8, sequence({.shard = 2, .tensor = 2, .expert = 4})},
          {"expert 2 x tensor 2 of 8 ranks", 8, parallel_of({.tensor = 2, .expert = 2})},
          {"pipeline 2 with all experts", 2, pipeline({}, "1f1b")},
          {"pipeline 2 x tensor 2 with all experts", 4, pipeline({.tensor = 2}, "zero_bubble")},
          {"pipeline 2 x expert 2, gpipe", 4, pipeline({.expert = 2}, "gpipe")},
          {"pipeline 2 x expert 2, 1f1b", 4, pipeline({.expert = 2}, "1f1b")},
          {"pipeline 2 x expert 2, interleaved", 4, pipeline({.expert = 2}, "interleaved")},
          {"pipeline 2 x expert 2, zero_bubble", 4, pipeline({.expert = 2}, "zero_bubble")},
          {"pipeline 2 x expert 2 x shard 2", 4, pipeline({.shard = 2, .expert = 2}, "1f1b")},
          {"pipeline 2 x expert 2 of 8 ranks", 8, pipeline({.expert = 2}, "1f1b")},
          {"pipeline 2 x expert 2 x sequence 2", 8,
           sequence({.pipeline = 2, .tensor = 2, .expert = 2}, "", "interleaved")},
          {"context 2 with all experts", 2, parallel_of({.context = 2})},
          {"context 2 x expert 2", 4, parallel_of({.context = 2, .expert = 2})},
          {"context 2 x expert 2 of 8 ranks", 8, parallel_of({.context = 2, .expert = 2})},
          {"context 2 x expert 2 x tensor 2", 8,
           parallel_of({.context = 2, .tensor = 2, .expert = 2})}};
}

// Loss, norm, statistics and gradients of the first and the last step, and an evaluation after it.
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

std::unique_ptr<dist::Group> alone() {
  return std::make_unique<dist::Group>(core::WorkerEnv(), at::kCPU, 1s);
}

// All ranks of the job `env` is of.
std::unique_ptr<dist::Group> all_of(const core::WorkerEnv& env,
                                    dist::CpuExchange exchange = dist::CpuExchange::kAuto) {
  return std::make_unique<dist::Group>(env, at::kCPU, 60s, core::Beat(), std::vector<dist::Claim>(),
                                       exchange);
}

std::unique_ptr<dist::Group> group_for(const dist::Group& world, const std::string& name) {
  std::vector<int> ranks(static_cast<std::size_t>(world.world_size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return std::make_unique<dist::Group>(world, ranks, name);
}

// Returns the values of a layout's axes, each pair of which has its own code.
std::vector<std::string> axes_of(const Layout& layout) {
  const recipe::Parallel& mesh = layout.parallel;
  std::vector<std::string> axes{mesh.expert > 1 ? "experts are shared" : "all experts"};
  if (mesh.pipeline > 1) axes.push_back("schedule " + mesh.schedule);
  if (mesh.shard > 1) axes.push_back("shard level " + mesh.shard_level);
  if (mesh.tensor > 1) axes.emplace_back(mesh.sequence ? "sequence" : "tensor");
  if (mesh.context > 1) axes.emplace_back("context");
  return axes;
}

// Returns for each layout the cases that are trained on it. Together they have each case with each
// axis, and each pair of axes.
std::vector<std::vector<Case>> chosen_cases() {
  std::vector<std::pair<std::size_t, Case>> squares;
  std::vector<testing::ShownRow> rows;
  const std::vector<Layout> all = layouts();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const recipe::Parallel& mesh = all[i].parallel;
    for (const Case& one : cases()) {
      if (!all[i].takes(one)) continue;
      std::vector<std::string> values = axes_of(all[i]);
      values.emplace_back(one.name);
      values = testing::with_pairs(std::move(values));
      const auto readers = all[i].ranks / (mesh.pipeline * mesh.tensor * mesh.context);
      values.push_back(fmt::format("{} readers, expert {}, shard {}, {}", readers, mesh.expert,
                                   mesh.shard, static_cast<int>(all[i].exchange)));
      squares.emplace_back(i, one);
      rows.push_back({.values = std::move(values), .cost = static_cast<double>(all[i].ranks)});
    }
  }
  std::vector<std::vector<Case>> chosen(all.size());
  for (const std::size_t k : testing::covering_rows(rows)) {
    chosen[squares[k].first].push_back(squares[k].second);
  }
  return chosen;
}

void check_layouts(bool with_contexts) {
  const std::vector<std::vector<Case>> chosen = chosen_cases();
  for (std::size_t i = 0; i < layouts().size(); ++i) {
    const Layout layout = layouts()[i];
    if (chosen[i].empty() || (layout.parallel.context > 1) != with_contexts) continue;
    CAPTURE(std::string(layout.name));
    const auto results = testing::run_ranks(
        {.world_size = layout.ranks, .limit_s = 300}, [&](const core::WorkerEnv& env) {
          at::set_num_threads(1);
          const auto world = all_of(env, layout.exchange);
          std::string wrong;
          for (const Case& one : chosen[i]) {
            Job job(one, layout.parallel, group_for(*world, one.name));
            const std::int64_t readers = job.readers_of_step();
            const Course course = course_of(job, readers);
            const Course expected = testing::of_rank_0(*world, course, [&] {
              Job single(one, {}, alone());
              return course_of(single, readers);
            });
            const double error = largest_error(course, expected);
            if (!(error < kMost)) wrong += fmt::format("{}: {:.2g}\n", one.name, error);
            job.end();
          }
          world->barrier("the end");
          return wrong;
        });
    for (const auto& result : results) CHECK(result.text == "");
  }
}

TEST_CASE("ranks that share experts train as one process does that has all of them") {
  check_layouts(/*with_contexts=*/false);
}

TEST_CASE("ranks with expert and context parallelism have the gradients of one process") {
  check_layouts(/*with_contexts=*/true);
}

TEST_CASE("a rank without a batch runs one dummy token for each tensor-parallel rank") {
  const auto results = testing::run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    dist::Group world(env, at::kCPU, 60s);
    const dist::Mesh mesh(world, core::MeshPlan(2, {.replica = {}, .tensor = 2}));
    const at::Tensor tokens = idle_tokens(mesh);
    return fmt::format("{} of {}, {}", tokens.size(0), tokens.size(1), tokens.sum().item<int>());
  });
  for (const auto& result : results) CHECK(result.text == "1 of 2, 0");
}

TEST_CASE("each rank has memory for its experts alone") {
  const Case one{.name = ""};
  // Three blocks of four experts, each three matrices of 16 x 24 numbers.
  constexpr std::int64_t kExpertBytes = 3 * 3 * 16 * 24 * 4;
  std::int64_t all = 0;
  for (const int ranks : {1, 2, 4}) {
    const auto results = testing::run_ranks({.world_size = ranks}, [&](const core::WorkerEnv& env) {
      Job job(one, parallel_of({.expert = ranks}), ranks == 1 ? alone() : all_of(env));
      return std::to_string(job.bytes());
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
          Job job({.name = ""}, parallel_of({.expert = 4}), all_of(env, exchange));
          job.step(0, 4);
          if (env.rank == 3) std::raise(SIGKILL);
          job.step(1, 4);
          return "went on";
        });
    for (int rank = 0; rank < 3; ++rank) {
      CHECK(results[rank].text.starts_with(fmt::format(
          "rank {}: collective \"token counts of the experts\" was not completed: a peer was lost",
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
             {testing::recipe_of_model("mlp"), testing::recipe_of({.name = ""})}) {
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

}  // namespace
}  // namespace scaletrain::train
