#include "lib/train/run/step.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <csignal>

#include "lib/core/process/signals.h"
#include "lib/recipe/catalog/lists.h"
#include "tests/count_reads.h"
#include "tests/dist/ranks.h"
#include "tests/train/step_fakes.h"

// NOLINTBEGIN(google-build-using-namespace)
namespace scaletrain::train {
namespace {

using namespace std::chrono_literals;

struct Wanted {
  std::int64_t fixed_targets = 1;  // a sample; 0: batches differ
  std::int64_t accumulate = 2;
  std::optional<recipe::Clip> clip = std::nullopt;
  std::optional<recipe::Sam> sam = std::nullopt;
  std::optional<double> decay = std::nullopt;  // of a mean of the weights
  bool squared = false;                        // the loss
  bool late = false;
  int ranks = 2;
  core::MeshSizes sizes = {};
  double target_weight = 1;
  at::ScalarType input = at::kFloat;
  bool journal = false;  // what each part did comes before what is said
  std::optional<core::BatchRamp> ramp = std::nullopt;
  int stopped_before = -1;  // the last rank is asked to stop before this step
  std::vector<float> weights = {1};
  std::optional<double> weight_decay = std::nullopt;
};

std::unique_ptr<parallel::Placement> place(const nn::Model& model, const dist::Mesh& mesh,
                                           const Note& note) {
  const bool counts = mesh.coordinate(core::Axis::kTensor) == 0;
  auto placement = std::make_unique<Noted>(
      std::vector<units::NamedParameter>{
          {.name = "weight", .tensor = model.parameters()[0], .counts = counts}},
      mesh, note);
  placement->start({});
  return placement;
}

// What a rank says of two steps. The first part of a model cut in two is 1, the second 10.
std::string two_steps(const core::WorkerEnv& env, const Wanted& wanted) {
  const core::Descriptor beat_file = core::make_beat_file();
  core::Beat beat(beat_file.get());
  std::string said;
  const Note note = [&](const char* what, const at::Tensor& value) {
    if (!wanted.journal) return;
    const core::BeatState state = core::BeatReader(beat_file.get()).state();
    const std::string shown = value.defined() ? fmt::format(" {:g}", value.item<double>()) : "";
    said += fmt::format("{} {}: {}{}\n", state.step, to_text(state.phase), what, shown);
  };
  dist::Group world(env, at::kCPU, 30s, beat);
  const dist::Mesh mesh(world, core::MeshPlan(env.world_size, wanted.sizes));
  Counting batches(mesh.reader(), wanted.fixed_targets == 0, note);
  const Weighted task(wanted.fixed_targets, wanted.target_weight, wanted.input, note,
                      wanted.squared);
  Line model(mesh.coordinate(core::Axis::kTensor) == 0 ? 1 : 10, note, wanted.weights);
  Scaled precision(note);
  Remembers optimizer(model.parameters()[0], note);
  const auto placement = place(model, mesh, note);
  engine::Engine engine({model, task, precision, *placement, mesh}, 1);
  optim::Mean mean({.decay = wanted.decay}, units::full_shards({{"seen", model.buffers()[0]}}));
  std::vector<optim::Mean*> means;
  if (wanted.decay) means.push_back(&mean);
  const std::int64_t global = 2 * wanted.accumulate * mesh.plan().readers();
  StepRunner runner({.mesh = mesh,
                     .beat = beat,
                     .batches = batches,
                     .task = task,
                     .engine = engine,
                     .precision = precision,
                     .optimizer = optimizer,
                     .buffers = model.buffers(),
                     .batch = {.per_device = 2,
                               .accumulate = wanted.accumulate,
                               .global = global,
                               .ramp = wanted.ramp},
                     .clip = wanted.clip,
                     .sam = wanted.sam,
                     .means = means,
                     .replicas = synchronous(),
                     .before_update = [&note] { note("gradients", {}); }},
                    wanted.late);
  const auto say = [&](const std::optional<StepResult>& result) {
    if (!result) return;
    said += fmt::format("loss {:g} norm {:g} finite {} digest {} skipped {} at {:g}, own {}\n",
                        result->loss, result->grad_norm, result->finite, result->digest >> 40,
                        result->skipped, result->trained_s, result->facts.bad_samples.size());
    if (!result->has_targets) said += "no targets\n";
    if (result->stop == core::StopReason::kTerminate) said += "stop\n";
    if (wanted.journal) {
      said += fmt::format("step {} lr {} decoded {} s\n", result->facts.step, result->facts.lr,
                          result->facts.stages.decode_s);
    }
  };
  core::install_stop_handlers();
  for (int step = 0; step < 2; ++step) {
    if (step == wanted.stopped_before && env.rank == env.world_size - 1) raise(SIGTERM);
    runner.run(step, 0.5, 7 + env.rank, wanted.weight_decay);
    const auto result = runner.next();
    if (result && wanted.late) said += "late ";
    say(result);
  }
  say(runner.drain());
  if (runner.drain()) said += "more";
  if (wanted.decay) said += fmt::format("mean {:g};", mean.state().at("seen").tensor.item<float>());
  return said + optimizer.said + fmt::format(" seen {:g}", model.buffers()[0].item<double>());
}

std::vector<std::string> said_by_ranks(const Wanted& wanted) {
  std::vector<std::string> said;
  for (const auto& result :
       testing::run_ranks({.world_size = wanted.ranks},
                          [&](const core::WorkerEnv& env) { return two_steps(env, wanted); })) {
    said.push_back(result.text);
  }
  return said;
}

}  // namespace

// Rank 0 reads 0+1, 1+2 in the first step and 2+3, 3+4 in the second; rank 1 ten more each.
TEST_CASE("a step is the mean over the targets of all ranks' micro-batches") {
  const auto said = said_by_ranks({});
  CHECK(said[0] ==
        "loss 6 norm 6 finite true digest 4 skipped 0 at 7, own 0\n"
        "loss 8 norm 8 finite true digest 4 skipped 2 at 7, own 1\n"
        "lr 0.5 gradient 6;lr 0.5 gradient 8; seen 16");
  CHECK(
      said[1].starts_with("loss 6 norm 6 finite true digest 4 skipped 0 at 7, own 0\n"
                          "loss 8 norm 8 finite true digest 4 skipped 2 at 7, own 1\n"
                          "lr 0.5 gradient 6;lr 0.5 gradient 8;"));
}

// Each rank's first batch has 2 targets and its second 3: 48 over 10, and 64 over 10.
TEST_CASE("where batches have different numbers of targets, the mean is over those there are") {
  for (const std::string& said : said_by_ranks({.fixed_targets = 0})) {
    CHECK(
        said.starts_with("loss 4.8 norm 4.8 finite true digest 4 skipped 0 at 7, own 0\n"
                         "loss 6.4 norm 6.4 finite true digest 4 skipped 2 at 7, own 1\n"));
  }
}

// Each rank's first batch alone, 22 over 4, and then the next two, 56 over 8; of batches with 2 and
// 3 targets 22 over 4, and 56 over 10.
TEST_CASE("while the batch grows a step is the mean over its own micro-batches") {
  const core::BatchRamp ramp{.start = 4, .increment = 4, .samples = 4};
  for (const std::int64_t fixed : {1, 0}) {
    for (const std::string& said : said_by_ranks({.fixed_targets = fixed, .ramp = ramp})) {
      const double second = fixed == 1 ? 7 : 5.6;
      CHECK(said.starts_with(
          fmt::format("loss 5.5 norm 5.5 finite true digest 2 skipped 0 at 7, own 0\n"
                      "loss {0:g} norm {0:g} finite true digest 4 skipped 0 at 7, own 0\n",
                      second)));
    }
  }
}

TEST_CASE("targets may have weights, of which the mean is then, also where they sum up to little") {
  for (const std::string& said : said_by_ranks({.fixed_targets = 0, .target_weight = 0.01})) {
    CHECK(said.starts_with("loss 480 norm 480 finite true"));  // 48 over 0.1
  }
  const auto none = said_by_ranks({.fixed_targets = 0, .target_weight = 0});
  CHECK(none.front().find("no targets\n") != std::string::npos);
}

// Two data-parallel ranks, each read by two ranks that have other parts of the model.
TEST_CASE("ranks with the same data-parallel rank count once, and exchange no gradients") {
  for (const std::int64_t fixed : {1, 0}) {
    CAPTURE(fixed);
    const auto two = said_by_ranks({.fixed_targets = fixed});
    const auto four = said_by_ranks({.fixed_targets = fixed,
                                     .ranks = 4,
                                     .sizes = {.pipe = 1, .replica = {}, .shard = 1, .tensor = 2}});
    CHECK(four[0] == two[0]);
    CHECK(four[2] == two[1]);
    const char* const gradients = fixed == 1 ? "lr 0.5 gradient 60;lr 0.5 gradient 80; seen 16"
                                             : "lr 0.5 gradient 48;lr 0.5 gradient 64; seen 16";
    CHECK(four[1].ends_with(gradients));
    // But for the list of its own bad samples it knows what all know.
    CHECK(four[1].substr(0, four[1].find(", own")) == two[0].substr(0, two[0].find(", own")));
    CHECK(four[1].find("own 1") == std::string::npos);
  }
}

TEST_CASE("the replica and shard axes form one data-parallel axis") {
  const auto replicas = said_by_ranks({.ranks = 4});
  CHECK(replicas[0].starts_with("loss 16 norm 16 finite true digest 8 skipped 0"));
  CHECK(said_by_ranks({.ranks = 4, .sizes = {.pipe = 1, .replica = {}, .shard = 2, .tensor = 1}}) ==
        replicas);
}

TEST_CASE("a loss that is not finite on a rank that counts nothing leaves the step out on all") {
  setenv("SCALETRAIN_FAULT", "nan@1,1", 1);
  const auto said =
      said_by_ranks({.ranks = 2, .sizes = {.pipe = 1, .replica = {}, .shard = 1, .tensor = 2}});
  unsetenv("SCALETRAIN_FAULT");
  CHECK(said[0].find("finite false") != std::string::npos);
  CHECK(said[0].ends_with("\nlr 0.5 gradient 3; seen 12"));
  CHECK(said[1].ends_with("\nlr 0.5 gradient 30; seen 12"));
}

TEST_CASE("gradients are clipped to the norm that is asked for, which is reported as it was") {
  for (const std::string& said : said_by_ranks({.clip = to_norm(3)})) {
    CHECK(said.find("norm 6 ") != std::string::npos);
    CHECK(said.find("gradient 3;lr 0.5 gradient 3;") != std::string::npos);
  }
}

// The squares of rank 0's numbers are 0 + 1 + 1 + 4, of rank 1's 100 + 121 + 121 + 144, over
// 8: 61.5 times w, and w is 1.05 nearby. The loss is half of that at 1.
TEST_CASE("with sam a step's gradients are those of the weights that are the worst nearby") {
  const auto said = said_by_ranks({.sam = recipe::Sam{.rho = 0.05}, .squared = true});
  CHECK(said[0].starts_with("loss 30.75 norm 64.575 finite true"));
  CHECK(said[0].find("lr 0.5 gradient 64.575;") != std::string::npos);
  CHECK(said[0].ends_with(" seen 16"));  // once
  CHECK(said[1].starts_with("loss 30.75 norm 64.575 finite true"));
}

// The gradient g of each weight is 61.5 times their sum. They move by 0.05 w^2 g over the
// norm of w g, so by 0.05 (1 + 9) / sqrt(10) together.
TEST_CASE("with adaptive sam a weight moves the further the larger it is") {
  const double sum = 4 + 0.05 * std::sqrt(10);
  for (const std::string& said : said_by_ranks({.sam = recipe::Sam{.rho = 0.05, .adaptive = true},
                                 .squared = true,
                                 .weights = {1, 3}})) {
    CHECK(said.find(fmt::format("norm {:g} finite", 61.5 * std::sqrt(2) * sum)) !=
          std::string::npos);
  }
}

TEST_CASE("sam's second pass is over the same micro-batches, which are read and prepared once") {
  const auto said =
      said_by_ranks({.sam = recipe::Sam{}, .squared = true, .ranks = 1, .journal = true});
  CHECK(
      said[0].starts_with("1 data: read\n1 compute: prepare\n1 compute: forward 1\n"
                          "1 data: read\n1 compute: prepare\n1 compute: forward 3\n"
                          "1 compute: gradients\n"
                          "1 compute: new weights\n1 compute: weights there\n"
                          "1 compute: forward again 1\n"
                          "1 compute: forward again 3\n1 compute: update\n"));
}

TEST_CASE("with sam a step that is not finite is left out all the same") {
  setenv("SCALETRAIN_FAULT", "nan@1", 1);
  const auto said = said_by_ranks({.sam = recipe::Sam{.rho = 0.05}, .squared = true, .ranks = 1});
  unsetenv("SCALETRAIN_FAULT");
  CHECK(said[0].starts_with("loss nan norm nan finite false"));
  // 4 + 9 + 9 + 16 over 4, times 1.05.
  CHECK(said[0].ends_with("lr 0.5 gradient 9.975; seen 12"));
}

// "seen" is 4 after the first step of one rank and 16 after the second.
TEST_CASE("the mean moves with each step that is taken, and not with one that is left out") {
  CHECK(said_by_ranks({.decay = 0.75, .ranks = 1})[0].find("mean 7;") != std::string::npos);
  setenv("SCALETRAIN_FAULT", "nan@2", 1);
  const auto said = said_by_ranks({.decay = 0.75, .ranks = 1});
  unsetenv("SCALETRAIN_FAULT");
  CHECK(said[0].find("mean 4;") != std::string::npos);
}

TEST_CASE("a mean is of weights that the optimizer has done with") {
  const auto said = said_by_ranks({.decay = 0.75, .ranks = 1, .journal = true});
  CHECK(said[0].find("update\n1 compute: new weights\n1 compute: settle\n") != std::string::npos);
  CHECK(said_by_ranks({.ranks = 1, .journal = true})[0].find("settle") == std::string::npos);
}

TEST_CASE("a weight decay that changes is the optimizer's before its update") {
  CHECK(said_by_ranks({.ranks = 1, .weight_decay = 0.5})[0].find("decay 0.5 lr 0.5 gradient 1;") !=
        std::string::npos);
}

TEST_CASE("the late path tells the same, of each step when the next one was queued") {
  const auto now = said_by_ranks({}), late = said_by_ranks({.late = true});
  for (std::size_t rank = 0; rank < 2; ++rank) CHECK(late[rank] == "late " + now[rank]);
}

TEST_CASE("a step reads no value of a tensor where the late path is on") {
  const auto results = testing::run_ranks({.world_size = 1}, [&](const core::WorkerEnv& env) {
    dist::Group group(env, at::kCPU, 30s);
    const dist::Mesh mesh(group, core::MeshPlan(1));
    core::Beat beat;
    std::string said;
    for (const std::int64_t fixed : {1, 0}) {
      const Note note = [](const char* /*what*/, const at::Tensor& /*value*/) {};
      Counting batches(0, fixed == 0, note);
      const Weighted task(fixed, 1, at::kFloat, note);
      Line model(1, note);
      recipe::Component numbers;
      choose(numbers, *recipe::precisions().find(fixed == 1 ? "fp32" : "fp16"));
      const auto precision = precision::make_precision(numbers, {});
      recipe::Optimizer config;
      choose(config, *recipe::optimizers().find("adamw"));
      const auto optimizer =
          optim::make_optimizer(config, {{.name = "weight", .tensor = model.parameters()[0]}});
      const auto placement = place(model, mesh, note);
      engine::Engine engine({model, task, *precision, *placement, mesh}, 1);
      const units::Shards averaged = units::full_shards({{"weight", model.parameters()[0]}});
      optim::Mean ema({.decay = 0.9, .warmup = true}, averaged), swa({}, averaged);
      StepRunner runner({.mesh = mesh,
                         .beat = beat,
                         .batches = batches,
                         .task = task,
                         .engine = engine,
                         .precision = *precision,
                         .optimizer = *optimizer,
                         .buffers = model.buffers(),
                         .batch = {.per_device = 2, .accumulate = 2, .global = 4},
                         .clip = to_norm(1),
                         .sam = recipe::Sam{.rho = 0.05, .adaptive = true},
                         .means = {&ema, &swa},
                         .replicas = synchronous()},
                        /*late=*/true);
      const int reads = testing::count_reads([&] {
        for (int step = 0; step < 3; ++step) runner.run(step, 0.5, 7);
      });
      said += fmt::format("{} reads, loss {:g};", reads, runner.drain()->loss);
    }
    return said;
  });
  CHECK(results[0].text == "0 reads, loss 1;0 reads, loss 0.8;");
}

TEST_CASE("a step that is not finite on one rank is left out on all, its buffers too") {
  for (const char* const fault : {"nan@1", "nan@1,1"}) {
    setenv("SCALETRAIN_FAULT", fault, 1);
    const auto said = said_by_ranks({});
    unsetenv("SCALETRAIN_FAULT");
    CHECK(said[0].find("finite false") != std::string::npos);
    CHECK(said[0].find("\nloss 8 norm 8 finite true") != std::string::npos);
    CHECK(said[0].ends_with("\nlr 0.5 gradient 8; seen 12"));  // of the second step alone
    CHECK(said[1].ends_with("\nlr 0.5 gradient 8; seen 52"));
  }
}

TEST_CASE("a fault's step has no finite loss and gradient where the model's input is of integers") {
  setenv("SCALETRAIN_FAULT", "nan@1", 1);
  const auto said = said_by_ranks({.ranks = 1, .input = at::kLong});
  unsetenv("SCALETRAIN_FAULT");
  CHECK(said[0].starts_with("loss nan norm nan finite false "));
  CHECK(said[0].find("\nloss 3 norm 3 finite true ") != std::string::npos);
}

TEST_CASE("all ranks hear in the same step that one was asked to stop") {
  for (const std::string& said : said_by_ranks({.stopped_before = 1})) {
    CHECK(said.find("own 0\nloss 8 ") != std::string::npos);  // not in the first step
    CHECK(said.find("\nstop\n") != std::string::npos);
  }
}

// The step that is not finite leaves the buffer as the step before has left it: 0 + 1 + 1 + 2.
TEST_CASE("micro-batches are read as they are needed, and the launcher sees what a rank does") {
  setenv("SCALETRAIN_FAULT", "nan@2", 1);
  const auto said = said_by_ranks({.ranks = 1, .journal = true});
  unsetenv("SCALETRAIN_FAULT");
  CHECK(said[0] == R"(1 data: read
1 compute: prepare
1 compute: forward 1
1 data: read
1 compute: prepare
1 compute: forward 3
1 compute: gradients
1 compute: update
1 compute: new weights
1 compute: scaler 0
loss 1 norm 1 finite true digest 2 skipped 0 at 7, own 0
step 0 lr 0.5 decoded 6 s
2 data: read
2 compute: prepare
2 compute: forward nan
2 data: read
2 compute: prepare
2 compute: forward nan
2 compute: gradients
2 compute: update
2 compute: new weights
2 compute: scaler 1
loss nan norm nan finite false digest 2 skipped 1 at 7, own 1
step 1 lr 0.5 decoded 6 s
lr 0.5 gradient 1; seen 4)");
}

TEST_CASE("where targets differ a step's micro-batches are all read before the first is computed") {
  const auto said = said_by_ranks({.fixed_targets = 0, .ranks = 1, .journal = true});
  CHECK(said[0].starts_with("1 data: read\n1 data: read\n1 compute: prepare\n"));
}

}  // namespace scaletrain::train
// NOLINTEND(google-build-using-namespace)
