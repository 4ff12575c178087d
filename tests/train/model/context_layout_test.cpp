// Ranks that share sequences against one process, from files of tokens through the loader, the step
// and evaluation: mesh x model x option, a line each.
#include "lib/train/model/context_layout.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lib/format/tokens/token_card.h"
#include "lib/format/tokens/token_mask.h"
#include "lib/parallel/context_attention.h"
#include "lib/train/build/build.h"
#include "lib/train/model/learner.h"
#include "lib/train/model/number_types.h"
#include "lib/train/model/tensor_layout.h"
#include "lib/units/memory_meter.h"
#include "tests/dist/ranks.h"
#include "tests/engine/one_rank.h"
#include "tests/long_form.h"
#include "tests/temporary_folder.h"
#include "tests/train/slice_support.h"

namespace scaletrain::train::context_layout_test {
namespace {

using namespace std::chrono_literals;
using core::Axis;
using testing::run_ranks;

using Options = std::map<std::string, recipe::Component::Value>;
using Integer = std::int64_t;

constexpr int kRanks = 4;
constexpr std::int64_t kSteps = 3, kPerDevice = 2, kContext = 16;
constexpr double kLr = 0.05, kMost = 1e-5;
constexpr std::int64_t kVocabulary = 11, kEndOfText = 3, kTokens = 64 * kContext + 1;

const Options kGpt2{{"vocab_size", kVocabulary}, {"positions", kContext}, {"dim", Integer{16}},
                    {"depth", Integer{3}},       {"heads", Integer{4}},   {"dropout", 0.0}};
const Options kLlama{{"vocab_size", kVocabulary}, {"positions", kContext}, {"dim", Integer{32}},
                     {"depth", Integer{3}},       {"heads", Integer{4}},   {"kv_heads", Integer{4}},
                     {"hidden", Integer{24}}};

struct Axes {
  int context = 1, tensor = 1, shard = 1;
};

struct Case {
  const char* name;
  const char* model;
  std::function<void(recipe::Recipe&)> change = {};
  bool masked = false;  // some tokens are no targets
};

void apart(recipe::Recipe& recipe) { recipe.data.document_attention = true; }

std::vector<Case> cases() {
  return {
      {"gpt2", "gpt2"},
      {"llama", "llama"},
      {"llama, heads that serve several", "llama",
       [](recipe::Recipe& recipe) { recipe.model.options["kv_heads"] = Integer{2}; }},
      {"gpt2 and documents", "gpt2", apart},
      {"llama and documents", "llama", apart},
      {"other targets on each rank", "gpt2", {}, true},
      {"documents, run again", "gpt2",
       [](recipe::Recipe& recipe) {
         apart(recipe);
         recipe.recompute.emplace().units = "all";
       }},
      {"two micro-batches", "llama", [](recipe::Recipe& recipe) { recipe.batch.accumulate = 2; }},
      {"two micro-batches, other targets in each", "gpt2",
       [](recipe::Recipe& recipe) { recipe.batch.accumulate = 2; }, true},
      {"clipped", "gpt2", [](recipe::Recipe& recipe) { recipe.clip.emplace().norm = 0.1; }},
      {"the loss in chunks", "llama", [](recipe::Recipe& recipe) { recipe.loss.chunk = 3; }},
      {"the worst weights nearby", "gpt2", [](recipe::Recipe& recipe) { recipe.sam.emplace(); }},
  };
}

// A file of tokens with its card, and with what has no loss where `masked`.
void write_tokens(const test::TemporaryFolder& folder, const std::string& name, bool masked,
                  std::int64_t count = kTokens) {
  at::manual_seed(5);
  const at::Tensor tokens = at::randint(kVocabulary, {count}, at::kLong);
  const at::Tensor hidden = at::rand({count}).lt(0.4).to(at::kLong);
  std::string bytes;
  std::vector<std::uint8_t> without_loss;
  for (std::int64_t i = 0; i < count; ++i) {
    bytes += {static_cast<char>(tokens.const_data_ptr<std::int64_t>()[i]), '\0'};
    without_loss.push_back(static_cast<std::uint8_t>(hidden.const_data_ptr<std::int64_t>()[i]));
  }
  folder.write(name + "-000000.bin", bytes);
  if (masked) folder.write(name + "-000000.bin.mask", format::encode_mask(without_loss));
  format::TokenCard card{
      .tokenizer = "bytes", .vocab_size = kVocabulary, .end_of_text = kEndOfText, .token_bytes = 2};
  card.files = {{.name = name + "-000000.bin", .tokens = count, .text_bytes = 2 * count}};
  folder.write(name + ".tokens.json", format::token_card_json(card).dump());
}

recipe::Recipe recipe_of(const Case& one, const test::TemporaryFolder& folder) {
  const bool is_gpt2 = std::string(one.model) == "gpt2";
  recipe::Recipe recipe = testing::recipe_of_model(one.model, is_gpt2 ? kGpt2 : kLlama);
  recipe::choose(recipe.optimizer, *recipe::optimizers().find("sgd"));
  recipe.seed = 1;
  recipe.data.context = kContext;
  recipe.data.train.tokens = {folder.file("train-000000.bin")};
  recipe.data.val.emplace().tokens = {folder.file("val-000000.bin")};
  recipe.batch.accumulate = 1;
  if (one.change) one.change(recipe);
  return recipe;
}

core::MeshPlan plan_of(int ranks, const Axes& axes) {
  return core::MeshPlan(ranks, {.pipe = 1,
                                .replica = {},
                                .shard = axes.shard,
                                .context = axes.context,
                                .tensor = axes.tensor});
}

// A mesh, and the ring that all runs on it use one after the other.
struct Ranks {
  Ranks(dist::Group& world, const Axes& axes) : mesh(world, plan_of(world.world_size(), axes)) {
    if (axes.context == 1) return;
    ring = std::make_shared<dist::Ring>(dist::open_ring(mesh, Axis::kContext));
  }

  dist::Mesh mesh;
  std::shared_ptr<dist::Ring> ring;
};

// A rank's part of a run, as build_run() makes it.
struct OnMesh {
  OnMesh(recipe::Recipe given, const Ranks& on, std::int64_t accumulate)
      : recipe(std::move(given)),
        mesh(on.mesh),
        batch({.per_device = kPerDevice,
               .accumulate = accumulate,
               .global = kPerDevice * accumulate * mesh.plan().readers()}),
        task(task::make_task(recipe, at::kCPU)),
        train(open(task::Split::kTrain)),
        val(open(task::Split::kVal)),
        learner(build_learner(recipe, at::kCPU, {.steps_per_epoch = 1, .total_steps = 1}, 1,
                              nn::built_in_factories(), &mesh)) {
    if (on.ring) task->share_sequences(parallel::token_cut(on.ring));
    parallel::ShardingOptions sharding;
    for (const units::Unit& unit : learner.model->units()) sharding.units.push_back(unit.tensors);
    placement = parallel::make_placement(learner.parameters(), mesh, sharding);
    engine = std::make_unique<engine::Engine>(
        engine::EngineParts{
            .model = *learner.model,
            .task = *task,
            .precision = *learner.precision,
            .placement = *placement,
            .mesh = mesh,
            .units = units_of_part(recipe, mesh, {learner.model, learner.parts}, *task)},
        recipe.seed,
        engine::MemorySavings{.recompute = recipe.recompute, .chunk = recipe.loss.chunk});
    learner.model->train();
    optimizer = make_optimizer(recipe, engine->owned());
    placement->start({});
    runner = std::make_unique<StepRunner>(StepParts{.mesh = mesh,
                                                    .beat = beat,
                                                    .batches = *train.stream,
                                                    .task = *task,
                                                    .engine = *engine,
                                                    .precision = *learner.precision,
                                                    .optimizer = *optimizer,
                                                    .buffers = {},
                                                    .batch = batch,
                                                    .clip = recipe.clip,
                                                    .sam = recipe.sam,
                                                    .replicas = replicas},
                                          /*late=*/false);
  }

  task::OpenSet open(task::Split split) {
    return task->open(split,
                      {.slice = {.reader = mesh.reader(),
                                 .readers = mesh.plan().readers(),
                                 .per_device = kPerDevice,
                                 .accumulate = batch.accumulate},
                       .stores = std::make_shared<storage::Stores>()},
                      *pool);
  }

  StepResult step(std::int64_t step) {
    runner->run(step, kLr, 0);
    return *runner->next();
  }

  // Of the whole val set, on all ranks.
  at::Tensor evaluate() {
    const at::NoGradGuard no_grad;
    learner.model->eval();
    at::Tensor sums = at::zeros({task->sum_count()}, at::kDouble);
    val.stream->seek({});
    while (const auto one = val.stream->next()) {
      const at::Tensor own = engine->evaluate(task->prepare(*one, /*training=*/false)).sums;
      if (mesh.counts_losses()) sums.add_(own);
    }
    learner.model->train();
    mesh.world().all_reduce_sum(sums, "evaluation sums").wait();
    return sums;
  }

  recipe::Recipe recipe;
  const dist::Mesh& mesh;
  recipe::BatchPlan batch;
  std::unique_ptr<core::BufferPool> pool = core::make_host_pool();
  std::unique_ptr<task::Task> task;
  task::OpenSet train, val;
  Learner learner;
  std::unique_ptr<parallel::Placement> placement;
  std::unique_ptr<engine::Engine> engine;
  std::unique_ptr<optim::Optimizer> optimizer;
  core::Beat beat;
  local_sgd::Replicas replicas;
  std::unique_ptr<StepRunner> runner;
};

// What a rank has of a tensor that is whole in one process.
at::Tensor part_of(const OnMesh& part, const units::NamedParameter& own, const at::Tensor& all) {
  const auto cut = part.learner.parts.find(own.name);
  if (cut != part.learner.parts.end()) return testing::slice_as(all, cut->second, own.tensor);
  if (own.tensor.sizes() == all.sizes()) return all;
  return all.flatten().narrow(0, own.begin, own.tensor.numel());
}

// "" where it is as in one process, otherwise what is not.
std::string compare(const OnMesh& part, const OnMesh& whole, const StepResult& own,
                    const StepResult& expected) {
  std::string wrong;
  const auto look = [&](const std::string& what, double off) {
    if (off <= kMost) return;
    wrong += fmt::format("step {}: {} is off by {:.1e}; ", own.facts.step, what, off);
  };
  look("the loss", std::abs(own.loss - expected.loss) / expected.loss);
  look("the norm", std::abs(own.grad_norm - expected.grad_norm) / expected.grad_norm);
  if (own.digest != expected.digest) wrong += "the digest differs; ";
  std::map<std::string, at::Tensor> gradients;
  for (const units::NamedParameter& one : whole.engine->owned()) {
    gradients[one.name] = one.tensor.grad();
  }
  for (const units::NamedParameter& one : part.engine->owned()) {
    const at::Tensor& all = gradients.at(one.name);
    const at::Tensor off = one.tensor.grad().flatten() - part_of(part, one, all).flatten();
    look(one.name, off.abs().max().item<double>() / all.abs().max().item<double>());
  }
  return wrong;
}

struct Alone {
  dist::Group group{core::WorkerEnv(), at::kCPU, 1s};
  Ranks ranks{group, {}};
};

std::string against_one_process(const Case& one, const Ranks& ranks) {
  const test::TemporaryFolder folder;
  write_tokens(folder, "train", one.masked);
  write_tokens(folder, "val", one.masked);
  const recipe::Recipe recipe = recipe_of(one, folder);
  const Alone alone;
  const std::int64_t accumulate = *recipe.batch.accumulate;
  OnMesh part(recipe, ranks, accumulate);
  OnMesh whole(recipe, alone.ranks, accumulate * ranks.mesh.plan().readers());
  std::string wrong;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const StepResult own = part.step(step), expected = whole.step(step);
    if (step == 0 || step + 1 == kSteps) wrong += compare(part, whole, own, expected);
  }
  const at::Tensor own = part.evaluate(), expected = whole.evaluate();
  const double off = ((own - expected) / expected)[0].item<double>();
  if (std::abs(off) > kMost) wrong += fmt::format("the evaluation is off by {:.1e}; ", off);
  if (!own[1].equal(expected[1])) wrong += "the evaluation has other targets; ";
  return wrong.empty() ? "" : fmt::format("{}: {}\n", one.name, wrong);
}

// What each of four ranks says of the meshes, and that all of them leave.
void check_on_ranks(const std::function<std::string(dist::Group& world)>& body) {
  for (const auto& result :
       run_ranks({.world_size = kRanks, .limit_s = 400}, [&](const core::WorkerEnv& env) {
         at::set_num_threads(1);
         dist::Group world(env, at::kCPU, 60s);
         std::string text = body(world);
         world.barrier("the end");
         return text;
       })) {
    CHECK(result.text == "");
    CHECK(result.status == 0);
  }
}

TEST_CASE(
    "ranks that share sequences have the gradients, norm and loss of one process, at the first and "
    "third step, and its evaluation") {
  check_on_ranks([](dist::Group& world) {
    const int first = world.rank() / 2 * 2;
    dist::Group half(world, {first, first + 1}, fmt::format("half of rank {}", first));
    const Ranks by_2_of_2(half, {.context = 2}), by_2_of_4(world, {.context = 2}),
        by_4(world, {.context = 4});
    const std::vector<const Ranks*> meshes{&by_2_of_2, &by_2_of_4, &by_4};
    std::string text;
    for (std::size_t i = 0; i < cases().size(); ++i) {
      const Case one = cases()[i];
      for (const Ranks* const ranks : testing::every_third(meshes, i % 3)) {
        const std::string wrong = against_one_process(one, *ranks);
        if (wrong.empty()) continue;
        text += fmt::format("context {} x replica {}: {}", ranks->mesh.size(Axis::kContext),
                            ranks->mesh.size(Axis::kReplica), wrong);
      }
    }
    return text;
  });
}

TEST_CASE("ranks that share sequences may share layers or hold the model together too") {
  for (const Axes& axes : {Axes{.context = 2, .tensor = 2}, Axes{.context = 2, .shard = 2}}) {
    CAPTURE(axes.shard);
    check_on_ranks([&axes](dist::Group& world) {
      const Ranks ranks(world, axes);
      std::string text;
      for (const Case& one : testing::every_second(cases(), axes.shard > 1 ? 1 : 0)) {
        if (std::string(one.name).find("nearby") == std::string::npos) {
          text += against_one_process(one, ranks);
        }
      }
      return text;
    });
  }
}

// Bytes of what forward keeps for backward, at the highest.
double activation_bytes(const Ranks& ranks) {
  static constexpr std::int64_t kLong = 2048;
  const test::TemporaryFolder folder;
  for (const char* const name : {"train", "val"}) write_tokens(folder, name, false, 8 * kLong + 1);
  const Case one{"", "gpt2", [](recipe::Recipe& recipe) {
                   recipe.data.context = kLong;
                   recipe.model.options["positions"] = kLong;
                   recipe.model.options["dim"] = Integer{128};
                   recipe.model.options["heads"] = Integer{2};
                   recipe.model.options["depth"] = Integer{4};
                 }};
  OnMesh part(recipe_of(one, folder), ranks, 1);
  const auto meter = std::make_shared<units::MemoryMeter>(at::kCPU);
  const units::MemoryWatch watch(meter);
  const units::MemoryPhase phase(units::MemoryKind::kActivations);
  part.step(0);
  return static_cast<double>(meter->peak_of_each().of(units::MemoryKind::kActivations));
}

TEST_CASE("context parallel keeps 1/N of the activations on each rank") {
  check_on_ranks([](dist::Group& world) -> std::string {
    const Ranks by_2(world, {.context = 2}), by_4(world, {.context = 4});
    at::Tensor whole = at::zeros({}, at::kDouble);
    if (world.rank() == 0) whole.fill_(activation_bytes(Alone().ranks));
    world.broadcast(whole, 0, "bytes of one process").wait();
    std::string text;
    for (const Ranks* const ranks : {&by_2, &by_4}) {
      const double share = activation_bytes(*ranks) / whole.item<double>();
      const double fair = 1.0 / ranks->mesh.size(Axis::kContext);
      // More by the scores of some queries at a time, and by keys under way.
      if (share < 0.9 * fair || share > 1.25 * fair) text += fmt::format("{:.3f} of it; ", share);
    }
    return text;
  });
}

TEST_CASE("a task whose samples are no sequences is refused") {
  check_on_ranks([](dist::Group& world) -> std::string {
    dist::Mesh mesh(world, plan_of(kRanks, {.context = 4}));
    const recipe::Recipe recipe = testing::recipe_of_model("mlp");
    try {
      share_sequences(mesh, *task::make_task(recipe, at::kCPU));
    } catch (const core::RecipeError& error) {
      const std::string said = error.what();
      return said == "/task: image_classification has no token sequences that context-parallel "
                     "ranks could divide\n  leave out /parallel/context"
                 ? ""
                 : said;
    }
    return "it was not";
  });
}

}  // namespace
}  // namespace scaletrain::train::context_layout_test
