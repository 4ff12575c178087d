#include "lib/engine/pipeline.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/engine/deferred_weights.h"
#include "lib/nn/layers/linear.h"
#include "lib/parallel/stage_parallel.h"
#include "tests/dist/ranks.h"
#include "tests/engine/one_rank.h"
#include "tests/long_form.h"

namespace scaletrain::engine {
namespace {

using namespace std::chrono_literals;
using core::Axis;
using core::PipelineKind;

recipe::Recipe piped_gpt(std::int64_t dim = 16, std::int64_t positions = 16) {
  return testing::recipe_of_model("gpt2", {{"vocab_size", std::int64_t{11}},
                                           {"positions", positions},
                                           {"dim", dim},
                                           {"depth", std::int64_t{6}},
                                           {"heads", std::int64_t{2}},
                                           {"dropout", 0.2}});
}

recipe::Recipe piped_llama() {
  return testing::recipe_of_model("llama", {{"vocab_size", std::int64_t{11}},
                                            {"positions", std::int64_t{16}},
                                            {"dim", std::int64_t{16}},
                                            {"depth", std::int64_t{6}},
                                            {"heads", std::int64_t{2}},
                                            {"kv_heads", std::int64_t{1}}});
}

recipe::Recipe piped_vit() {
  return testing::recipe_of_model("vit_tiny", {{"patch_size", std::int64_t{8}},
                                               {"dim", std::int64_t{16}},
                                               {"depth", std::int64_t{6}},
                                               {"heads", std::int64_t{2}},
                                               {"dropout", 0.2},
                                               {"drop_path", 0.2}});
}

struct Layout {
  int pipe = 2, replica = 1;
  PipelineKind kind = PipelineKind::kOneForward;
  int chunks = 1;

  int ranks() const { return pipe * replica; }
};

// One rank of a pipeline, with the whole model and the parameters of its stages.
struct PipelineRank {
  PipelineRank(const core::WorkerEnv& env, const recipe::Recipe& recipe, const Layout& layout)
      : group(env, at::kCPU, 60s),
        mesh(group, core::MeshPlan(env.world_size, {.pipe = layout.pipe, .replica = {}})),
        model(nn::make_model(recipe.model, recipe.data.image_size, 1)),
        task(task::make_task(recipe, at::kCPU)),
        precision(precision::make_precision(recipe.precision, {.avx512 = true})),
        pipeline(mesh, parts_of(layout)),
        placement(own_parameters(), mesh),
        engine({*model, *task, *precision, placement, mesh, &pipeline}, /*seed=*/3,
               {.recompute = recipe.recompute, .chunk = recipe.loss.chunk}) {
    at::set_num_threads(1);
    model->train();
    placement.start({});
  }

  PipelineParts parts_of(const Layout& layout) {
    const std::vector<units::Unit> units = model->units();
    PipelineParts parts{
        .kind = layout.kind,
        .chunks = layout.chunks,
        .stages = Stages(units, parameter_costs(units, *model), layout.pipe * layout.chunks)};
    if (layout.kind != PipelineKind::kZeroBubble) return parts;
    parts.deferred = std::make_shared<DeferredWeights>();
    for (const auto& module : model->modules()) {
      const auto linear = std::dynamic_pointer_cast<nn::Linear>(module);
      if (linear) parts.deferred->attach(*linear);
    }
    return parts;
  }

  std::vector<units::NamedParameter> own_parameters() const {
    std::vector<units::NamedParameter> result;
    for (const auto& item : model->named_parameters()) {
      if (!pipeline.has(item.key())) continue;
      result.push_back({.name = item.key(), .tensor = item.value()});
      result.back().counts = pipeline.places_of(item.key()).front() == mesh.coordinate(Axis::kPipe);
    }
    return result;
  }

  dist::Group group;
  dist::Mesh mesh;
  std::shared_ptr<nn::Model> model;
  std::unique_ptr<task::Task> task;
  std::unique_ptr<precision::Precision> precision;
  Pipeline pipeline;
  parallel::StageParallel placement;
  Engine engine;
};

constexpr std::int64_t kMicroBatches = 8;

double difference(const at::Tensor& a, const at::Tensor& b) {
  const double scale = b.abs().max().item<double>();
  return scale == 0 ? a.abs().max().item<double>() : (a - b).abs().max().item<double>() / scale;
}

// Gives each rank what rank 0 computed alone: the last step's gradients, the buffers, and loss and
// squared norm, which it returns.
std::pair<double, double> share_of_rank_0(testing::OneRank& alone, dist::Group& group) {
  for (const auto& item : alone.model->named_parameters()) {
    const at::Tensor gradient =
        group.rank() == 0 ? item.value().grad().contiguous() : at::zeros(item.value().sizes());
    group.broadcast(gradient, 0, "a gradient of one process").wait();
    if (group.rank() != 0) item.value().mutable_grad() = gradient;
  }
  for (const auto& item : alone.model->named_buffers()) {
    const at::Tensor buffer = item.value().contiguous();
    group.broadcast(buffer, 0, "a buffer of one process").wait();
    item.value().copy_(buffer);
  }
  at::Tensor numbers = at::zeros({2}, at::kDouble);
  if (group.rank() == 0) {
    numbers = at::tensor({alone.loss, alone.engine.squared_norm().item<double>()}, at::kDouble);
  }
  group.broadcast(numbers, 0, "loss and norm of one process").wait();
  return {numbers[0].item<double>(), numbers[1].item<double>()};
}

// Two steps of the pipeline's rank and of one process with all micro-batches: which gradients and
// buffers differ, and by how much; "" where all have the same bits. A step of several replicas has
// as many more micro-batches.
std::string compare(const core::WorkerEnv& env, const recipe::Recipe& recipe, const Layout& layout,
                    double tolerance = 0) {
  const std::int64_t replicas = layout.replica;
  std::vector<task::Example> all;
  for (std::int64_t i = 0; i < kMicroBatches * replicas; ++i) {
    all.push_back(testing::example_of(recipe, 4, static_cast<std::uint64_t>(i)));
  }
  testing::OneRank alone(recipe);
  PipelineRank rank(env, recipe, layout);
  std::vector<task::Example> own;
  for (std::int64_t i = 0; i < kMicroBatches; ++i) {
    own.push_back(all[static_cast<std::size_t>(i * replicas + rank.mesh.reader())]);
  }
  std::string text;
  for (std::int64_t step = 0; step < 2; ++step) {
    if (env.rank == 0) alone.step(step, all);
    const auto [alone_loss, alone_norm] = share_of_rank_0(alone, rank.group);
    testing::SameBatches batches(own);
    double loss = -1;
    rank.engine.run(step, batches, at::full({}, 0.5 * static_cast<double>(replicas)),
                    [&](const at::Tensor& sum) { loss = sum.item<double>(); });
    const auto expected = alone.model->named_parameters();
    for (const units::NamedParameter& parameter : rank.engine.owned()) {
      const at::Tensor want = expected[parameter.name].grad();
      if (!parameter.tensor.grad().defined()) {
        text += parameter.name + " has no gradient; ";
        continue;
      }
      if (tolerance == 0 && at::equal(parameter.tensor.grad(), want)) continue;
      const double far = difference(parameter.tensor.grad(), want);
      if (tolerance == 0 || far > tolerance) {
        text += fmt::format("{} differs by {}; ", parameter.name, far);
      }
    }
    const auto buffers = alone.model->named_buffers();
    for (const auto& item : rank.model->named_buffers()) {
      if (!rank.pipeline.has(item.key()) || replicas > 1) continue;
      if (!at::equal(item.value(), buffers[item.key()])) text += item.key() + " differs; ";
    }
    if (rank.pipeline.is_last() && replicas == 1 && loss != alone_loss) {
      text += fmt::format("loss {} is not {}; ", loss, alone_loss);
    }
    const double norm = rank.engine.squared_norm().item<double>();
    if (std::abs(norm - alone_norm) > 1e-5 * alone_norm) {
      text += fmt::format("norm {} not {}; ", norm, alone_norm);
    }
  }
  rank.mesh.end("end");
  return text;
}

void check_all(const recipe::Recipe& recipe, const Layout& layout, double tolerance = 0) {
  CAPTURE(recipe.model.name);
  CAPTURE(layout.pipe);
  CAPTURE(layout.chunks);
  CAPTURE(static_cast<int>(layout.kind));
  const auto results = testing::run_ranks(
      {.world_size = layout.ranks(), .limit_s = 120},
      [&](const core::WorkerEnv& env) { return compare(env, recipe, layout, tolerance); });
  for (const auto& result : results) {
    CHECK(result.text == "");
    CHECK(result.status == 0);
  }
}

// Each schedule on two stages and on four: two halves, of which a test takes one. The long form
// takes both.
std::vector<Layout> layouts(std::size_t half) {
  static const std::vector<Layout> all{{.pipe = 2, .kind = PipelineKind::kGPipe},
                                       {.pipe = 4, .kind = PipelineKind::kGPipe},
                                       {.pipe = 4, .kind = PipelineKind::kOneForward},
                                       {.pipe = 2, .kind = PipelineKind::kOneForward},
                                       {.pipe = 2, .kind = PipelineKind::kInterleaved, .chunks = 2},
                                       {.pipe = 4, .kind = PipelineKind::kInterleaved, .chunks = 2},
                                       {.pipe = 4, .kind = PipelineKind::kZeroBubble},
                                       {.pipe = 2, .kind = PipelineKind::kZeroBubble}};
  return testing::every_second(all, half);
}

// Each schedule on two stages. The long form takes four stages too.
std::vector<Layout> layouts_of_two_stages() {
  std::vector<Layout> result = layouts(0);
  if (testing::is_long_form()) return result;
  const std::vector<Layout> others = layouts(1);
  result.insert(result.end(), others.begin(), others.end());
  std::erase_if(result, [](const Layout& one) { return one.pipe != 2; });
  return result;
}

}  // namespace

TEST_CASE("a pipeline of a decoder without tied tensors has one process's gradients, bit for bit") {
  for (const Layout& layout : layouts(0)) check_all(piped_llama(), layout);
}

TEST_CASE("a pipeline of a vision transformer has one process's gradients, dropout included") {
  for (const Layout& layout : layouts(1)) check_all(piped_vit(), layout);
}

TEST_CASE("a pipeline of a residual network has one process's gradients and running statistics") {
  for (const Layout& layout : layouts_of_two_stages()) {
    check_all(testing::recipe_of_model("resnet18"), layout);
  }
}

TEST_CASE("a pipeline with a tied embedding has one process's gradients within 1e-5") {
  for (const Layout& layout : layouts(1)) check_all(piped_gpt(), layout, 1e-5);
}

TEST_CASE("products that oneDNN computes keep their bits in two halves") {
  recipe::Recipe wide = piped_llama();
  wide.model.options["dim"] = std::int64_t{128};
  wide.model.options["positions"] = std::int64_t{64};
  check_all(wide, {.pipe = 2, .kind = PipelineKind::kZeroBubble});
}

TEST_CASE("a pipeline computes in bf16, recomputes and takes its loss in chunks as one process") {
  recipe::Recipe recipe = piped_llama();
  recipe::choose(recipe.precision, *recipe::precisions().find("bf16"));
  for (const PipelineKind kind : {PipelineKind::kOneForward, PipelineKind::kZeroBubble}) {
    check_all(recipe, {.pipe = 2, .kind = kind});
  }
  recipe = piped_vit();
  recipe.recompute = recipe::Recompute{.units = "all", .every = {}, .match = {}};
  check_all(recipe, {.pipe = 2, .kind = PipelineKind::kOneForward});
  recipe = piped_llama();
  recipe.loss.chunk = 5;
  check_all(recipe, {.pipe = 2, .kind = PipelineKind::kOneForward});
}

TEST_CASE("two replicas of a pipeline have the mean of their gradients") {
  for (const PipelineKind kind : {PipelineKind::kOneForward, PipelineKind::kZeroBubble}) {
    check_all(piped_llama(), {.pipe = 2, .replica = 2, .kind = kind}, 1e-5);
    check_all(piped_gpt(), {.pipe = 2, .replica = 2, .kind = kind}, 1e-5);
  }
}

TEST_CASE("a batch that is evaluated passes through all stages, of any number of samples") {
  const recipe::Recipe recipe = piped_vit();
  for (const Layout& layout :
       {Layout{.pipe = 2}, Layout{.pipe = 2, .kind = PipelineKind::kInterleaved, .chunks = 2}}) {
    const auto results = testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
      const at::NoGradGuard no_grad;
      testing::OneRank alone(recipe);
      PipelineRank rank(env, recipe, layout);
      alone.model->eval();
      rank.model->eval();
      std::string text;
      for (const std::int64_t samples : {4, 4, 3, 4}) {
        const task::Example example = testing::example_of(recipe, samples, 1);
        if (!rank.engine.agree(true)) text += "stopped ";
        const Evaluated own = rank.engine.evaluate(example);
        if (own.sums.defined() != rank.pipeline.is_last()) text += "sums on the wrong rank ";
        if (!own.sums.defined()) continue;
        const Evaluated want = alone.engine.evaluate(example);
        const bool same = at::equal(own.sums, want.sums) && at::equal(own.output, want.output);
        text += same ? "same " : "another ";
      }
      // The first rank's word counts.
      text += rank.engine.agree(env.rank == 1) ? "goes on" : "ends";
      rank.mesh.end("end");
      return text;
    });
    CHECK(results[0].text == "ends");
    CHECK(results[1].text == "same same same same ends");
  }
}

TEST_CASE("a rank that is lost ends the others' wait with its name") {
  const auto results = testing::run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    const recipe::Recipe recipe = piped_vit();
    PipelineRank rank(env, recipe, {.pipe = 2});
    if (env.rank == 1) _exit(9);
    std::vector<task::Example> own(2, testing::example_of(recipe, 4, 1));
    testing::SameBatches batches(own);
    rank.engine.run(0, batches, at::full({}, 0.5), [](const at::Tensor&) {});
    return std::string("done");
  });
  CHECK(results[0].status == 75);
  // Those that it waits for, or its own on the way to whoever is gone by then.
  CHECK(results[0].text.find("activations") != std::string::npos);
}

}  // namespace scaletrain::engine
