// Ranks that hold a model together train as one process does: every layout, level and model of a
// table, whose new row is a line.
#include "lib/parallel/sharded.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string_view>

#include "lib/core/text/glob.h"
#include "lib/core/text/hash.h"
#include "tests/dist/ranks.h"
#include "tests/engine/course.h"
#include "tests/engine/one_rank.h"
#include "tests/long_form.h"

namespace scaletrain::engine {
namespace {

using namespace std::chrono_literals;
using parallel::ShardLevel;
using testing::Course;
using testing::example_of;
using testing::recipe_of_model;
using testing::SameBatches;
using Options = std::map<std::string, recipe::Component::Value>;

constexpr int kSteps = 3;
constexpr std::string_view kBothAxes = "replica 2 x shard 2";

struct ShardedCase {
  const char* name;
  std::string_view layout;  // the one of the short form
  const char* model;
  Options options;
  std::int64_t micro_steps = 1;
  bool recomputes = false;
  std::int64_t chunk = 0;
  const char* frozen = "";  // pattern
  bool in_doubles = false;
  double clip = 0;
  double lr = 0.05;
  std::int64_t samples = 2;  // of a micro-batch
};

const std::vector<ShardedCase>& sharded_cases() {
  static const Options gpt{{"vocab_size", std::int64_t{50}}, {"positions", std::int64_t{8}},
                           {"dim", std::int64_t{24}},        {"depth", std::int64_t{4}},
                           {"heads", std::int64_t{2}},       {"dropout", 0.1}};
  static const Options vit{{"patch_size", std::int64_t{8}},
                           {"dim", std::int64_t{24}},
                           {"depth", std::int64_t{3}},
                           {"heads", std::int64_t{2}},
                           {"dropout", 0.1}};
  static const std::vector<ShardedCase> all{
      {.name = "tied", .layout = "shard 2 over the network", .model = "gpt2", .options = gpt},
      {.name = "tied, accumulated",
       .layout = kBothAxes,
       .model = "gpt2",
       .options = gpt,
       .micro_steps = 3,
       .clip = 0.2},
      {.name = "tied, recomputed, in chunks",
       .layout = "shard 4",
       .model = "gpt2",
       .options = gpt,
       .micro_steps = 2,
       .recomputes = true,
       .chunk = 3},
      {.name = "frozen blocks",
       .layout = "shard 2",
       .model = "vit_tiny",
       .options = vit,
       .frozen = "blocks.1.*"},
      {.name = "frozen stem, recomputed",
       .layout = kBothAxes,
       .model = "vit_tiny",
       .options = vit,
       .micro_steps = 2,
       .recomputes = true,
       .frozen = "*pos_embed|patch_embed*|cls_token|blocks.0.*"},
      // Statistics of two samples would turn the last bit of a sum into another sign.
      {.name = "BatchNorm",
       .layout = kBothAxes,
       .model = "resnet18",
       .options = {},
       .in_doubles = true,
       .lr = 0.01,
       .samples = 4},
  };
  return all;
}

bool is_frozen(const ShardedCase& one, const std::string& name) {
  std::string patterns = one.frozen;
  for (std::size_t begin = 0; !patterns.empty() && begin <= patterns.size();) {
    const std::size_t end = std::min(patterns.find('|', begin), patterns.size());
    if (core::matches(patterns.substr(begin, end - begin), name)) return true;
    begin = end + 1;
  }
  return false;
}

recipe::Recipe recipe_of(const ShardedCase& one) {
  recipe::Recipe recipe = recipe_of_model(one.model, one.options);
  if (one.recomputes)
    recipe.recompute = recipe::Recompute{.units = "all", .every = {}, .match = {}};
  recipe.loss.chunk = one.chunk;
  return recipe;
}

struct Level {
  ShardLevel cut;
  bool parts_on_host = false;
};

// A model of a case on a mesh.
class Job {
 public:
  Job(const ShardedCase& one, const dist::Mesh& mesh, const Level& level)
      : case_(one),
        recipe_(recipe_of(one)),
        mesh_(mesh),
        model_(nn::make_model(recipe_.model, recipe_.data.image_size, 1)),
        task_(task::make_task(recipe_, at::kCPU)),
        precision_(precision::make_precision(recipe_.precision, {.avx512 = true})) {
    if (one.in_doubles) model_->to(at::kDouble);
    model_->train();
    parallel::ShardingOptions sharding{.level = level.cut};
    sharding.parts_on_host = level.parts_on_host;
    for (const units::Unit& unit : model_->units()) sharding.units.push_back(unit.tensors);
    std::vector<units::NamedParameter> trained;
    for (const auto& item : model_->named_parameters()) {
      const bool frozen = is_frozen(one, item.key());
      item.value().set_requires_grad(!frozen);
      (frozen ? sharding.frozen : trained).push_back({.name = item.key(), .tensor = item.value()});
      shapes_[item.key()] = item.value().sizes().vec();
    }
    placement_ = parallel::make_placement(trained, mesh_, sharding);
    engine_ = std::make_unique<Engine>(
        EngineParts{*model_, *task_, *precision_, *placement_, mesh_}, /*seed=*/3,
        MemorySavings{.recompute = recipe_.recompute, .chunk = one.chunk});
    placement_->start({});
  }

  // The samples of block number `block` of step `step`.
  task::Example example(int step, std::int64_t block) const {
    task::Example example =
        example_of(recipe_, case_.samples, static_cast<std::uint64_t>(1000 * step + block));
    if (case_.in_doubles) example.input = example.input.to(at::kDouble);
    return example;
  }

  // The micro-batches of this rank of `all` that a micro-step has; alone, all of them in turn.
  void step(int step, std::int64_t all) {
    const int readers = mesh_.plan().readers();
    std::vector<task::Example> examples;
    for (std::int64_t block = 0; block < case_.micro_steps * all; ++block) {
      if (block % readers == mesh_.reader()) examples.push_back(example(step, block));
    }
    SameBatches batches(examples);
    const double weight = 1.0 * readers / static_cast<double>(all);
    engine_->run(step, batches, at::full({}, weight), [&](const at::Tensor& sum) {
      loss = sum.clone();
      mesh_.data().all_reduce_sum(loss, "loss").wait();
    });
    norm = engine_->squared_norm().sqrt().item<double>();
  }

  void update() {
    const at::NoGradGuard no_grad;
    const double factor = case_.clip > 0 ? std::min(1.0, case_.clip / norm) : 1;
    for (const units::NamedParameter& one : engine_->owned()) {
      one.tensor.detach().sub_(one.tensor.grad() * (factor * case_.lr));
    }
    engine_->weights_changed();
  }

  // Whole, by name, on each rank.
  std::map<std::string, at::Tensor> gradients() {
    std::map<std::string, at::Tensor> result;
    for (const auto& item : model_->named_parameters()) {
      if (!item.value().requires_grad()) continue;
      result[item.key()] =
          at::zeros(shapes_.at(item.key()), item.value().options()).set_requires_grad(false);
    }
    for (const units::NamedParameter& one : engine_->owned()) {
      const at::Tensor& gradient = one.tensor.grad();
      result.at(one.name)
          .view({-1})
          .narrow(0, one.begin, gradient.numel())
          .copy_(gradient.reshape({-1}));
    }
    for (auto& [name, gradient] : result) {
      mesh_.group(core::Axis::kShard).all_reduce_sum(gradient, "test").wait();
    }
    return result;
  }

  // The sums of two batches, of which alone a rank has both, and of four ranks two have none.
  // Zeros where ranks have running statistics of their own.
  at::Tensor evaluate() {
    const at::NoGradGuard no_grad;
    at::Tensor sums = at::zeros({task_->sum_count()}, at::kDouble);
    if (!model_->buffers().empty()) return sums;
    model_->eval();
    const dist::Group& world = mesh_.world();
    for (int batch = world.rank(); batch < 2; batch += world.world_size()) {
      sums.add_(engine_->evaluate(example(100, batch)).sums);
    }
    if (world.rank() >= 2 && engine_->runs_with_others()) engine_->accompany();
    model_->train();
    mesh_.world().all_reduce_sum(sums, "sums").wait();
    return sums;
  }

  std::size_t most_units() const {
    const auto* const sharded = dynamic_cast<parallel::Sharded*>(placement_.get());
    return sharded == nullptr ? 0 : sharded->most_units();
  }

  at::Tensor loss;
  double norm = 0;

 private:
  const ShardedCase& case_;
  recipe::Recipe recipe_;
  const dist::Mesh& mesh_;
  std::shared_ptr<nn::Model> model_;
  std::unique_ptr<task::Task> task_;
  std::unique_ptr<precision::Precision> precision_;
  std::map<std::string, std::vector<std::int64_t>> shapes_;
  std::unique_ptr<parallel::Placement> placement_;
  std::unique_ptr<Engine> engine_;
};

// Loss, norm and gradients of the first and the last step, and an evaluation after it.
Course course_of(Job& job, std::int64_t all) {
  Course course;
  for (int step = 0; step < kSteps; ++step) {
    job.step(step, all);
    if (step == 0 || step + 1 == kSteps) {
      course.numbers.push_back(job.loss.item<double>());
      course.numbers.push_back(job.norm);
      for (const auto& [name, gradient] : job.gradients()) course.gradients.push_back(gradient);
    }
    job.update();
  }
  course.add(job.evaluate());
  return course;
}

std::string digest_of(const Course& course) {
  core::Sha256 hash;
  for (const at::Tensor& tensor : course.gradients) {
    const at::Tensor bytes = tensor.contiguous().view({-1});
    hash.update(std::as_bytes(std::span(static_cast<const std::byte*>(bytes.const_data_ptr()),
                                        static_cast<std::size_t>(bytes.nbytes()))));
  }
  return hash.hex().substr(0, 16);
}

struct ShardedLayout {
  const char* name;
  int ranks;
  core::MeshSizes sizes;
  dist::CpuExchange exchange = dist::CpuExchange::kAuto;
};

const std::vector<ShardedLayout>& sharded_layouts() {
  static const std::vector<ShardedLayout> all{
      {"shard 2", 2, {.replica = {}, .shard = 2}},
      {"shard 4", 4, {.replica = {}, .shard = 4}},
      {kBothAxes.data(), 4, {.replica = {}, .shard = 2}},
      {"shard 2 over the network", 2, {.replica = {}, .shard = 2}, dist::CpuExchange::kGloo},
  };
  return all;
}

constexpr std::array kLevels{Level{ShardLevel::kOptimizer}, Level{ShardLevel::kGradients},
                             Level{ShardLevel::kParameters},
                             Level{ShardLevel::kParameters, /*parts_on_host=*/true}};

// Returns all levels; two of them for the residual network in the short form, where it takes as
// long as all other cases.
std::span<const Level> levels_of(const ShardedCase& one) {
  if (!one.in_doubles || testing::is_long_form()) return kLevels;
  return std::span(kLevels).subspan(1, 2);
}

// Returns a line "ERROR DIGEST UNITS" for each level.
std::string run_levels(const ShardedCase& one, const ShardedLayout& layout,
                       std::span<const Level> levels, const core::WorkerEnv& env) {
  at::set_num_threads(1);
  const auto of_one_process = [&] {
    dist::Group alone({}, at::kCPU, 1s);
    const dist::Mesh no_mesh(alone, core::MeshPlan(1));
    Job single(one, no_mesh, {ShardLevel::kParameters});
    return course_of(single, layout.ranks);
  };
  std::optional<Course> expected;
  dist::Group world(env, at::kCPU, 60s, core::Beat(), {}, layout.exchange);
  const dist::Mesh mesh(world, core::MeshPlan(layout.ranks, layout.sizes));
  std::string text;
  for (const Level& level : levels) {
    Job job(one, mesh, level);
    const Course got = course_of(job, layout.ranks);
    if (!expected) expected = testing::of_rank_0(world, got, of_one_process);
    text += fmt::format("{:.2g} {} {}\n", largest_error(got, *expected), digest_of(got),
                        job.most_units());
    world.barrier("the next level");
  }
  return text;
}

struct Said {
  double error = 1;
  std::string digest;
  std::size_t units = 0;
};

std::vector<Said> read(const std::string& text) {
  std::vector<Said> all;
  std::istringstream stream(text);
  for (Said one; stream >> one.error >> one.digest >> one.units;) all.push_back(one);
  return all;
}

TEST_CASE("ranks that hold a model together train as one process does, the levels bit for bit") {
  for (const ShardedLayout& layout : sharded_layouts()) {
    for (const ShardedCase& one : sharded_cases()) {
      if (one.layout != layout.name && !testing::is_long_form()) continue;
      const std::span<const Level> levels = levels_of(one);
      CAPTURE(std::string(layout.name));
      CAPTURE(std::string(one.name));
      const auto results = testing::run_ranks(
          {.world_size = layout.ranks, .limit_s = 200},
          [&](const core::WorkerEnv& env) { return run_levels(one, layout, levels, env); });
      for (const auto& result : results) {
        CAPTURE(result.text);
        const std::vector<Said> said = read(result.text);
        REQUIRE(said.size() == levels.size());
        for (std::size_t k = 0; k < levels.size(); ++k) {
          CHECK(said[k].error < 1e-5);
          if (levels[k].cut == ShardLevel::kParameters) CHECK(said[k].units == 2);
          // The optimizer level adds up its micro-steps first, which rounds in another order.
          const bool has_same_bits =
              k > 0 && (one.micro_steps == 1 || levels[k - 1].cut != ShardLevel::kOptimizer);
          if (has_same_bits) CHECK(said[k].digest == said[k - 1].digest);
        }
        CHECK(result.text == results[0].text);
      }
    }
  }
}

}  // namespace
}  // namespace scaletrain::engine
