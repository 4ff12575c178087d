// Models on meshes of several axes against the whole model in one process: layout x model x option,
// a line each.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/parallel/sharded.h"
#include "lib/train/build.h"
#include "tests/dist/ranks.h"
#include "tests/engine/one_rank.h"

namespace scaletrain::train {
namespace {

using namespace std::chrono_literals;
using core::Axis;

using Integer = std::int64_t;
using Options = std::map<std::string, recipe::Component::Value>;

constexpr int kRanks = 8;
constexpr int kSteps = 5;
constexpr double kMost = 1e-5;

struct Layout {
  const char* name;
  recipe::Parallel parallel;
  int ranks = 4;  // or 8
};

recipe::Parallel mesh_of(std::int64_t pipeline, std::int64_t shard, std::int64_t tensor,
                         const char* level = "parameters", const char* schedule = "1f1b",
                         bool sequence = false) {
  recipe::Parallel parallel;
  parallel.pipeline = pipeline;
  parallel.shard = shard;
  parallel.tensor = tensor;
  parallel.shard_level = level;
  parallel.schedule = schedule;
  parallel.sequence = sequence;
  return parallel;
}

const std::vector<Layout>& layouts() {
  constexpr bool kSequence = true;
  static const std::vector<Layout> layouts{
      {"shard x tensor, optimizer", mesh_of(1, 2, 2, "optimizer")},
      {"shard x tensor, gradients", mesh_of(1, 2, 2, "gradients")},
      {"shard x tensor, parameters", mesh_of(1, 2, 2, "parameters")},
      {"shard x sequence, optimizer", mesh_of(1, 2, 2, "optimizer", "1f1b", kSequence)},
      {"shard x sequence, gradients", mesh_of(1, 2, 2, "gradients", "1f1b", kSequence)},
      {"shard x sequence, parameters", mesh_of(1, 2, 2, "parameters", "1f1b", kSequence)},
      {"pipeline x tensor, gpipe", mesh_of(2, 1, 2, "", "gpipe")},
      {"pipeline x tensor, 1f1b", mesh_of(2, 1, 2, "", "1f1b")},
      {"pipeline x tensor, interleaved", mesh_of(2, 1, 2, "", "interleaved")},
      {"pipeline x tensor, zero_bubble", mesh_of(2, 1, 2, "", "zero_bubble")},
      {"pipeline x sequence, 1f1b", mesh_of(2, 1, 2, "", "1f1b", kSequence)},
      {"pipeline x sequence, zero_bubble", mesh_of(2, 1, 2, "", "zero_bubble", kSequence)},
      {"pipeline x shard, optimizer", mesh_of(2, 2, 1, "optimizer")},
      {"pipeline x shard, gradients", mesh_of(2, 2, 1, "gradients")},
      {"pipeline x shard, parameters", mesh_of(2, 2, 1, "parameters")},
      {"pipeline x shard, gpipe", mesh_of(2, 2, 1, "parameters", "gpipe")},
      {"pipeline x shard, interleaved", mesh_of(2, 2, 1, "parameters", "interleaved")},
      {"pipeline x shard, interleaved gradients", mesh_of(2, 2, 1, "gradients", "interleaved")},
      {"replica x shard x tensor", mesh_of(1, 2, 2, "gradients"), 8},
      {"replica x shard x sequence", mesh_of(1, 2, 2, "parameters", "1f1b", kSequence), 8},
      {"replica x pipeline x tensor", mesh_of(2, 1, 2, "", "zero_bubble"), 8},
      {"replica x pipeline x shard", mesh_of(2, 2, 1, "gradients"), 8},
      {"replica x pipeline x shard, interleaved", mesh_of(2, 2, 1, "parameters", "interleaved"), 8},
      {"pipeline x shard x tensor, optimizer", mesh_of(2, 2, 2, "optimizer"), 8},
      {"pipeline x shard x tensor, gradients", mesh_of(2, 2, 2, "gradients"), 8},
      {"pipeline x shard x sequence, interleaved",
       mesh_of(2, 2, 2, "parameters", "interleaved", kSequence), 8},
  };
  return layouts;
}

struct Case {
  const char* name;
  const char* model;
  Options options;
  std::vector<std::string> frozen = {};
  bool recomputes = false;
  std::int64_t chunk = 0;
  bool on_tensors = true;  // whether tensor ranks may share it
  bool in_doubles = false;
  double clip = 0;
  double lr = 0.05;
  std::string_view only = "";  // layouts that begin so

  bool is_for(const Layout& layout) const {
    return (on_tensors || layout.parallel.tensor == 1) &&
           std::string_view(layout.name).starts_with(only);
  }
};

const std::vector<Case>& cases() {
  // 11 tokens are no multiple of 2.
  static const Options gpt2{{"vocab_size", Integer{11}}, {"positions", Integer{8}},
                            {"dim", Integer{16}},        {"depth", Integer{4}},
                            {"heads", Integer{2}},       {"dropout", 0.0}};
  static const Options drawing = [] {
    Options options = gpt2;
    options["dropout"] = 0.1;
    return options;
  }();
  static const Options llama{{"vocab_size", Integer{11}}, {"positions", Integer{8}},
                             {"dim", Integer{16}},        {"depth", Integer{4}},
                             {"heads", Integer{4}},       {"kv_heads", Integer{2}},
                             {"hidden", Integer{24}},     {"tied", false}};
  static const Options vit{{"patch_size", Integer{8}}, {"dim", Integer{16}},
                           {"depth", Integer{4}},      {"heads", Integer{2}},
                           {"mlp_ratio", 2.0},         {"pool", std::string("avg")}};
  static const std::vector<Case> cases{
      {.name = "tied, clipped", .model = "gpt2", .options = gpt2, .clip = 0.2},
      {.name = "tied, in chunks, recomputed",
       .model = "gpt2",
       .options = gpt2,
       .recomputes = true,
       .chunk = 3},
      {.name = "apart", .model = "llama", .options = llama},
      {.name = "frozen blocks", .model = "vit_tiny", .options = vit, .frozen = {"blocks.1.*"}},
      {.name = "frozen stage",
       .model = "vit_tiny",
       .options = vit,
       .frozen = {"patch_embed*", "pos_embed", "blocks.0.*", "blocks.1.*", "blocks.2.*"}},
      {.name = "dropout", .model = "gpt2", .options = drawing, .on_tensors = false},
      // Statistics of two samples would turn the last bit of a sum into another sign.
      {.name = "BatchNorm",
       .model = "resnet18",
       .options = {},
       .on_tensors = false,
       .in_doubles = true,
       .lr = 0.01,
       .only = "pipeline x shard, parameters"},
  };
  return cases;
}

constexpr std::int64_t kMicroSteps = 4;  // of each rank

recipe::Recipe recipe_of(const Case& one, const recipe::Parallel& parallel) {
  recipe::Recipe recipe = testing::recipe_of_model(one.model, one.options);
  recipe.seed = 3;
  recipe.data.context = 8;
  recipe.loss.chunk = one.chunk;
  recipe.model.freeze = one.frozen;
  recipe.parallel = parallel;
  if (one.recomputes) recipe.recompute.emplace().units = "all";
  return recipe;
}

// A case as a run lays it out, without its data.
struct Job {
  Job(const Case& given, const recipe::Parallel& parallel, std::unique_ptr<dist::Group> group)
      : one(given) {
    run.recipe = recipe_of(one, parallel);
    run.group = std::move(group);
    run.mesh = std::make_unique<dist::Mesh>(
        *run.group, core::MeshPlan(run.group->world_size(), parallel.mesh()));
    run.task = task::make_task(run.recipe, at::kCPU);
    run.learner = build_learner(run.recipe, at::kCPU, {.steps_per_epoch = 1, .total_steps = 1}, 1,
                                nn::built_in_factories(), run.mesh.get());
    if (one.in_doubles) run.learner.model->to(at::kDouble);
    for (const auto& item : run.learner.model->named_parameters()) {
      if (!item.value().requires_grad()) continue;
      const auto part = run.learner.parts.find(item.key());
      shapes[item.key()] =
          part == run.learner.parts.end() ? item.value().sizes().vec() : part->second.shape;
    }
    place(run);
    run.placement->start({});
    run.learner.model->train();
  }

  task::Example example(int step, std::int64_t block) const {
    const std::int64_t samples = one.in_doubles ? 4 : 2;
    task::Example example =
        testing::example_of(run.recipe, samples, static_cast<std::uint64_t>(1000 * step + block));
    if (one.in_doubles) example.input = example.input.to(at::kDouble);
    return example;
  }

  // This rank's share of the micro-batches that `readers` take in a step; alone, all in turn.
  void step(int step, std::int64_t readers) {
    const int own = run.mesh->plan().readers();
    std::vector<task::Example> examples;
    for (std::int64_t block = 0; block < kMicroSteps * readers; ++block) {
      if (block % own == run.mesh->reader()) examples.push_back(example(step, block));
    }
    testing::SameBatches batches(examples);
    const at::Tensor sum = at::zeros({}, at::kDouble);
    run.engine->run(step, batches, at::full({}, 0.1 * own / static_cast<double>(readers)),
                    [&](const at::Tensor& losses) {
                      if (run.mesh->counts_losses()) sum.copy_(losses);
                    });
    run.mesh->world().all_reduce_sum(sum, "loss").wait();
    loss = sum.item<double>();
    norm = run.engine->squared_norm().sqrt().item<double>();
  }

  void update() {
    const at::NoGradGuard no_grad;
    const double factor = one.clip > 0 ? std::min(1.0, one.clip / norm) : 1;
    for (const units::NamedParameter& parameter : run.engine->owned()) {
      if (!parameter.tensor.grad().defined()) continue;
      parameter.tensor.detach().sub_(parameter.tensor.grad() * (factor * one.lr));
    }
    run.engine->weights_changed();
  }

  // The sums of one batch more than there are readers, so that one of them has two.
  at::Tensor evaluate(std::int64_t readers) {
    const at::NoGradGuard no_grad;
    const at::Tensor sums = at::zeros({run.task->sum_count()}, at::kDouble);
    // Ranks have running statistics of their own.
    if (!run.learner.model->buffers().empty()) return sums;
    run.learner.model->eval();
    const int own = run.mesh->plan().readers();
    for (std::int64_t first = 0; first < readers + 1; first += own) {
      const std::int64_t block = first + run.mesh->reader();
      if (block > readers) {
        if (run.engine->runs_with_others()) run.engine->accompany();
        continue;
      }
      const engine::Evaluated found = run.engine->evaluate(example(100, block));
      if (run.mesh->counts_losses()) sums.add_(found.sums);
    }
    run.learner.model->train();
    run.mesh->world().all_reduce_sum(sums, "sums").wait();
    return sums;
  }

  const Case& one;
  Run run;
  std::map<std::string, std::vector<std::int64_t>> shapes;  // of what is trained
  double loss = 0, norm = 0;
};

// What one process has at the first step and at the last, and what it evaluates then.
struct Course {
  struct Step {
    double loss = 0, norm = 0;
    std::map<std::string, at::Tensor> gradients;
  };
  std::map<int, Step> steps;
  at::Tensor sums;
};

bool is_compared(int step) { return step == 0 || step + 1 == kSteps; }

Course course_of(const Case& one, std::int64_t readers) {
  Job job(one, {}, std::make_unique<dist::Group>(core::WorkerEnv(), at::kCPU, 1s));
  Course course;
  for (int step = 0; step < kSteps; ++step) {
    job.step(step, readers);
    if (is_compared(step)) {
      Course::Step& seen = course.steps[step];
      seen.loss = job.loss;
      seen.norm = job.norm;
      for (const units::NamedParameter& parameter : job.run.engine->owned()) {
        seen.gradients[parameter.name] = parameter.tensor.grad().clone();
      }
    }
    job.update();
  }
  course.sums = job.evaluate(readers);
  return course;
}

// Of the whole tensor, what `parameter` has, in its shape.
at::Tensor part_of(const units::NamedParameter& parameter, const at::Tensor& whole) {
  std::vector<format::Piece> pieces = parameter.pieces;
  const std::int64_t count = parameter.tensor.numel();
  if (pieces.empty()) {
    pieces.push_back(
        format::range_piece(whole.sizes().vec(), parameter.begin, parameter.begin + count));
  }
  const format::Piece all = format::whole_piece(whole.sizes().vec());
  std::vector<at::Tensor> runs;
  for (const format::Piece& piece : pieces) {
    format::for_each_overlap(piece, all, [&](const format::Overlap& run) {
      runs.push_back(whole.reshape({-1}).narrow(0, run.to, run.count));
    });
  }
  return at::cat(runs).view(parameter.tensor.sizes());
}

// "" where this rank has what one process has, otherwise what it has not.
std::string compare(const Job& job, const Course::Step& expected, int step) {
  std::string wrong;
  const auto look = [&](const std::string& what, double off) {
    if (!(off <= kMost)) wrong += fmt::format("step {}: {} is off by {:.1e}; ", step, what, off);
  };
  look("the loss", std::abs(job.loss / expected.loss - 1));
  look("the norm", std::abs(job.norm / expected.norm - 1));
  for (const units::NamedParameter& own : job.run.engine->owned()) {
    const at::Tensor all = expected.gradients.at(own.name);
    if (!own.tensor.grad().defined()) {
      wrong += own.name + " has no gradient; ";
      continue;
    }
    // The true gradient of a bias of keys is zero.
    const double scale = std::max(all.abs().max().item<double>(), 1e-4);
    look(own.name, (own.tensor.grad() - part_of(own, all)).abs().max().item<double>() / scale);
  }
  return wrong;
}

// "" where the ranks count each element that is trained once.
std::string count_elements(const Job& job) {
  const at::Tensor count = at::zeros({}, at::kLong);
  for (const units::NamedParameter& own : job.run.engine->owned()) {
    if (own.counts) count.add_(own.tensor.numel());
  }
  job.run.mesh->model().all_reduce_sum(count, "elements").wait();
  std::int64_t all = 0;
  for (const auto& [name, shape] : job.shapes) all += format::element_count(shape);
  const auto found = count.item<std::int64_t>();
  return found == all ? "" : fmt::format("{} elements are counted of {}; ", found, all);
}

// The course of what has as many readers is known.
using Courses = std::map<std::pair<const Case*, std::int64_t>, Course>;

std::string against_one_process(const Layout& layout, const Case& one,
                                std::unique_ptr<dist::Group> group, Courses& courses) {
  Job job(one, layout.parallel, std::move(group));
  const std::int64_t readers = job.run.mesh->plan().readers();
  auto known = courses.find({&one, readers});
  if (known == courses.end()) {
    known = courses.emplace(std::pair(&one, readers), course_of(one, readers)).first;
  }
  const Course& expected = known->second;
  std::string wrong = count_elements(job);
  for (int step = 0; step < kSteps; ++step) {
    job.step(step, readers);
    if (is_compared(step)) wrong += compare(job, expected.steps.at(step), step);
    job.update();
  }
  const at::Tensor sums = job.evaluate(readers);
  const at::Tensor off = (sums - expected.sums).abs() / expected.sums.abs().clamp_min(1e-3);
  if (off.max().item<double>() > kMost) wrong += "it evaluates to something else; ";
  const auto* const sharded = dynamic_cast<const parallel::Sharded*>(job.run.placement.get());
  const bool comes_and_goes = sharded != nullptr && layout.parallel.shard_level == "parameters";
  if (comes_and_goes && sharded->most_units() > 2) wrong += "more than two units were there; ";
  job.run.mesh->end("the end");
  return wrong;
}

std::string run_all(const core::WorkerEnv& env) {
  at::set_num_threads(1);
  dist::Group world(env, at::kCPU, 580s);  // one half waits for the other
  Courses courses;
  std::string text;
  const int half = env.rank / 4;
  int number = 0;
  for (const int ranks : {4, 8}) {
    for (const Layout& layout : layouts()) {
      if (layout.ranks != ranks) continue;
      for (const Case& one : cases()) {
        if (!one.is_for(layout)) continue;
        ++number;
        if (ranks == 4 && number % 2 != half) continue;
        const int first = ranks == 4 ? 4 * half : 0;
        std::vector<int> members;
        for (int rank = first; rank < first + ranks; ++rank) members.push_back(rank);
        auto group = std::make_unique<dist::Group>(world, members, fmt::format("case {}", number));
        const std::string wrong = against_one_process(layout, one, std::move(group), courses);
        if (!wrong.empty()) text += fmt::format("{}: {}: {}\n", layout.name, one.name, wrong);
      }
    }
    world.barrier("the next layouts");
  }
  world.end("the end");
  return text;
}

TEST_CASE("models on meshes of several axes have one process's gradients, norm and loss") {
  for (const auto& result : testing::run_ranks({.world_size = kRanks, .limit_s = 580}, run_all)) {
    CHECK(result.text == "");
    CHECK(result.status == 0);
  }
}

}  // namespace
}  // namespace scaletrain::train
