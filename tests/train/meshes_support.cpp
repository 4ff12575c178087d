#include "tests/train/meshes_support.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <utility>

#include "lib/dist/ring.h"
#include "lib/input/documents.h"
#include "lib/parallel/context_attention.h"
#include "lib/parallel/sharded.h"
#include "tests/engine/one_rank.h"
#include "tests/long_form.h"

namespace scaletrain::testing {
namespace {

using namespace std::chrono_literals;
using core::Axis;

constexpr double kMost = 1e-5;
constexpr std::int64_t kMicroSteps = 4;  // of each rank

recipe::Recipe recipe_of(const MeshCase& one, const recipe::Parallel& parallel) {
  recipe::Recipe recipe = recipe_of_model(one.model, one.options);
  recipe.seed = 3;
  recipe.data.context = 8;
  recipe.loss.chunk = one.chunk;
  recipe.model.freeze = one.frozen;
  recipe.parallel = parallel;
  recipe::choose(recipe.precision, *recipe::precisions().find(one.precision));
  if (one.recomputes) recipe.recompute.emplace().units = "all";
  return recipe;
}

// The runs of the whole tensor that `parameter` has, in its order; views of one that is contiguous.
void for_each_run(const units::NamedParameter& parameter, const at::Tensor& whole,
                  const std::function<void(const at::Tensor&)>& visit) {
  const format::Piece all = format::whole_piece(whole.sizes().vec());
  for (const format::Piece& slice : parameter.state().slices) {
    format::for_each_overlap(slice, all, [&](const format::Overlap& run) {
      visit(whole.reshape({-1}).narrow(0, run.to, run.count));
    });
  }
}

}  // namespace

std::vector<std::string> axes_shown(const MeshLayout& layout) {
  const recipe::Parallel& mesh = layout.parallel;
  std::vector<std::string> shown;
  if (mesh.pipeline > 1) shown.push_back("schedule " + mesh.schedule);
  if (mesh.shard > 1) shown.push_back("shard level " + mesh.shard_level);
  if (mesh.tensor > 1) shown.emplace_back(mesh.sequence ? "sequence" : "tensor");
  if (mesh.context > 1) shown.emplace_back("context");
  if (mesh.pipeline * mesh.shard * mesh.tensor * mesh.context < layout.ranks) {
    shown.emplace_back("replica");
  }
  return shown;
}

ModelOptions small_gpt2() {
  return {{"vocab_size", std::int64_t{11}}, {"positions", std::int64_t{8}},
          {"dim", std::int64_t{16}},        {"depth", std::int64_t{4}},
          {"heads", std::int64_t{2}},       {"dropout", 0.0}};
}

ModelOptions small_llama() {
  return {{"vocab_size", std::int64_t{11}}, {"positions", std::int64_t{8}},
          {"dim", std::int64_t{16}},        {"depth", std::int64_t{4}},
          {"heads", std::int64_t{4}},       {"kv_heads", std::int64_t{2}},
          {"hidden", std::int64_t{24}},     {"tied", false}};
}

MeshJob::MeshJob(const MeshCase& given, const recipe::Parallel& parallel,
                 std::unique_ptr<dist::Group> group)
    : one(given) {
  run.recipe = recipe_of(one, parallel);
  run.group = std::move(group);
  run.mesh = std::make_unique<dist::Mesh>(*run.group,
                                          core::MeshPlan(run.group->world_size(), parallel.mesh()));
  if (parallel.context > 1) {
    cut_ = parallel::token_cut(
        std::make_shared<dist::Ring>(dist::open_ring(*run.mesh, Axis::kContext)));
  }
  run.task = task::make_task(run.recipe, at::kCPU);
  run.learner = train::build_learner(run.recipe, at::kCPU, {.steps_per_epoch = 1, .total_steps = 1},
                                     1, nn::built_in_factories(), run.mesh.get());
  if (one.in_doubles) run.learner.model->to(at::kDouble);
  for (const auto& item : run.learner.model->named_parameters()) {
    if (!item.value().requires_grad()) continue;
    const auto part = run.learner.parts.find(item.key());
    shapes[item.key()] =
        part == run.learner.parts.end() ? item.value().sizes().vec() : part->second.shape;
  }
  train::place(run);
  run.placement->start({});
  run.learner.model->train();
}

task::Example MeshJob::example(int step, std::int64_t block) const {
  const std::int64_t samples = one.in_doubles ? 4 : 2;
  task::Example example =
      example_of(run.recipe, samples, static_cast<std::uint64_t>(1000 * step + block));
  if (one.in_doubles) example.input = example.input.to(at::kDouble);
  if (cut_) return own_tokens(example);
  if (one.end_of_text) example.context = input::apart(example.input, *one.end_of_text);
  return example;
}

task::Example MeshJob::own_tokens(const task::Example& whole) const {
  const at::Tensor places = cut_->places(whole.input.size(1));
  const auto own = [&](const at::Tensor& all) { return all.index_select(1, places); };
  input::Documents documents;
  if (one.end_of_text) documents = input::documents_of(whole.input, *one.end_of_text);
  return {.input = own(whole.input),
          .target = own(whole.target),
          .context = {.positions = one.end_of_text ? own(documents.positions) : places.unsqueeze(0),
                      .places = places,
                      .attend = cut_->attention(documents.numbers)}};
}

void MeshJob::step(int step, std::int64_t readers) {
  const core::MeshPlan& plan = run.mesh->plan();
  const int own = plan.readers();
  std::vector<task::Example> examples;
  for (std::int64_t block = 0; block < kMicroSteps * readers; ++block) {
    if (block % own == run.mesh->reader()) examples.push_back(example(step, block));
  }
  SameBatches batches(examples);
  const at::Tensor sum = at::zeros({}, at::kDouble);
  const double weight = 0.1 * plan.size(core::kGradientAxes) / static_cast<double>(readers);
  run.engine->run(step, batches, at::full({}, weight), [&](const at::Tensor& losses) {
    if (run.mesh->counts_losses()) sum.copy_(losses);
  });
  run.mesh->world().all_reduce_sum(sum, "loss").wait();
  loss = sum.item<double>();
  norm = run.engine->squared_norm().sqrt().item<double>();
}

std::map<std::string, at::Tensor> MeshJob::whole_gradients() const {
  std::map<std::string, at::Tensor> result;
  for (const auto& [name, shape] : shapes) result[name] = at::zeros(shape);
  for (const units::NamedParameter& own : run.engine->owned()) {
    if (!own.counts) continue;
    std::int64_t begin = 0;
    for_each_run(own, result.at(own.name), [&](const at::Tensor& place) {
      place.copy_(own.tensor.grad().reshape({-1}).narrow(0, begin, place.numel()));
      begin += place.numel();
    });
  }
  for (auto& [name, gradient] : result) run.mesh->model().all_reduce_sum(gradient, "whole").wait();
  return result;
}

void MeshJob::update() {
  const at::NoGradGuard no_grad;
  const double factor = one.clip > 0 ? std::min(1.0, one.clip / norm) : 1;
  for (const units::NamedParameter& parameter : run.engine->owned()) {
    if (!parameter.tensor.grad().defined()) continue;
    parameter.tensor.detach().sub_(parameter.tensor.grad() * (factor * one.lr));
  }
  run.engine->weights_changed();
}

at::Tensor MeshJob::evaluate(std::int64_t readers) {
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

namespace {

// Results of one process at the first step and at the last, and of the evaluation after it, as
// doubles.
struct Course {
  struct Step {
    at::Tensor numbers;  // loss, norm
    std::map<std::string, at::Tensor> gradients;
  };
  std::map<int, Step> steps;
  at::Tensor sums;
};

bool is_compared(int step) { return step == 0 || step + 1 == kMeshSteps; }

Course course_of(const MeshCase& one, std::int64_t readers) {
  MeshJob job(one, {}, std::make_unique<dist::Group>(core::WorkerEnv(), at::kCPU, 1s));
  Course course;
  for (int step = 0; step < kMeshSteps; ++step) {
    job.step(step, readers);
    if (is_compared(step)) {
      Course::Step& seen = course.steps[step];
      seen.numbers = at::tensor({job.loss, job.norm}, at::kDouble);
      for (const units::NamedParameter& parameter : job.run.engine->owned()) {
        seen.gradients[parameter.name] =
            parameter.tensor.grad().to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
      }
    }
    job.update();
  }
  course.sums = job.evaluate(readers);
  return course;
}

// Returns zeros of the shapes that the course of `job`'s case has.
Course blank_course(const MeshJob& job) {
  Course course;
  for (const int step : {0, kMeshSteps - 1}) {
    Course::Step& seen = course.steps[step];
    seen.numbers = at::zeros({2}, at::kDouble);
    for (const auto& [name, shape] : job.shapes) {
      seen.gradients[name] = at::zeros(shape, at::kDouble);
    }
  }
  course.sums = at::zeros({job.run.task->sum_count()}, at::kDouble);
  return course;
}

// Gives each rank of `world` the course of rank 0.
void share(Course& course, dist::Group& world) {
  const auto send = [&](at::Tensor& tensor, const char* what) {
    tensor = tensor.contiguous();
    world.broadcast(tensor, 0, what).wait();
  };
  for (auto& [step, seen] : course.steps) {
    send(seen.numbers, "loss and norm of one process");
    for (auto& [name, gradient] : seen.gradients) send(gradient, "gradient of one process");
  }
  send(course.sums, "evaluation of one process");
}

// Of the whole tensor, what `parameter` has, in its shape.
at::Tensor part_of(const units::NamedParameter& parameter, const at::Tensor& whole) {
  std::vector<at::Tensor> runs;
  for_each_run(parameter, whole, [&](const at::Tensor& run) { runs.push_back(run); });
  return at::cat(runs).view(parameter.tensor.sizes());
}

// "" where this rank has what one process has, otherwise what it has not.
std::string compare(const MeshJob& job, const Course::Step& expected, int step) {
  std::string wrong;
  const auto look = [&](const std::string& what, double off) {
    if (!(off <= kMost)) wrong += fmt::format("step {}: {} is off by {:.1e}; ", step, what, off);
  };
  look("the loss", std::abs(job.loss / expected.numbers[0].item<double>() - 1));
  look("the norm", std::abs(job.norm / expected.numbers[1].item<double>() - 1));
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
std::string count_elements(const MeshJob& job) {
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

// Courses that this rank has computed, by case and number of readers.
using Courses = std::map<std::pair<const MeshCase*, std::int64_t>, Course>;

std::string compare_with_one_process(const MeshLayout& layout, const MeshCase& one,
                                     std::unique_ptr<dist::Group> group, Courses& courses) {
  MeshJob job(one, layout.parallel, std::move(group));
  const std::int64_t readers = job.run.mesh->plan().readers();
  Course expected = blank_course(job);
  if (job.run.mesh->world().rank() == 0) {
    const auto [known, is_new] = courses.try_emplace({&one, readers});
    if (is_new) known->second = course_of(one, readers);
    expected = known->second;
  }
  share(expected, job.run.mesh->world());
  std::string wrong = count_elements(job);
  for (int step = 0; step < kMeshSteps; ++step) {
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

using Square = std::pair<const MeshLayout*, const MeshCase*>;

// Returns the pairs of a layout and a case that are trained: those of 4 ranks first.
std::vector<Square> chosen_squares(const std::vector<MeshLayout>& layouts,
                                   const std::vector<MeshCase>& cases, CaseChoice choice) {
  std::vector<Square> squares;
  std::vector<ShownRow> rows;
  for (const int ranks : {4, 8}) {
    for (const MeshLayout& layout : layouts) {
      if (layout.ranks != ranks) continue;
      const std::vector<std::string> axes = axes_shown(layout);
      for (const MeshCase& one : cases) {
        if (!one.is_for(layout)) continue;
        ShownRow row{.values = axes, .cost = static_cast<double>(ranks)};
        if (choice == CaseChoice::kPairs) row.values.emplace_back(one.name);
        row.values = with_pairs(row.values);
        row.values.emplace_back(one.name);
        std::string kinds = "all of";  // without their schedule and level
        for (const std::string& axis : axes) kinds += " " + axis.substr(0, axis.find(' '));
        row.values.push_back(std::move(kinds));
        const recipe::Parallel& mesh = layout.parallel;
        row.values.push_back(fmt::format("pipeline {}", mesh.pipeline));
        row.values.push_back(fmt::format("shard {}", mesh.shard));
        row.values.push_back(fmt::format("tensor {}", mesh.tensor));
        row.values.push_back(fmt::format("context {}", mesh.context));
        squares.emplace_back(&layout, &one);
        rows.push_back(std::move(row));
      }
    }
  }
  std::vector<Square> chosen;
  for (const std::size_t i : covering_rows(rows)) chosen.push_back(squares[i]);
  return chosen;
}

}  // namespace

std::string against_one_process(const core::WorkerEnv& env, const std::vector<MeshLayout>& layouts,
                                const std::vector<MeshCase>& cases, CaseChoice choice) {
  at::set_num_threads(1);
  dist::Group world(env, at::kCPU, 580s);  // one half waits for the other
  Courses courses;
  std::string text;
  const int half = env.rank / 4;
  int number = 0;
  bool is_apart = true;  // each half of the ranks trains on layouts of its own
  for (const auto& [layout, one] : chosen_squares(layouts, cases, choice)) {
    if (is_apart && layout->ranks > 4) world.barrier("the next layouts");
    is_apart = layout->ranks == 4;
    ++number;
    if (layout->ranks == 4 && number % 2 != half) continue;
    const int first = layout->ranks == 4 ? 4 * half : 0;
    std::vector<int> members;
    for (int rank = first; rank < first + layout->ranks; ++rank) members.push_back(rank);
    auto group = std::make_unique<dist::Group>(world, members, fmt::format("case {}", number));
    const std::string wrong = compare_with_one_process(*layout, *one, std::move(group), courses);
    if (!wrong.empty()) text += fmt::format("{}: {}: {}\n", layout->name, one->name, wrong);
  }
  world.end("the end");
  return text;
}

}  // namespace scaletrain::testing
