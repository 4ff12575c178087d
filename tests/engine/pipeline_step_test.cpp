// What a placement hears of a step that a pipeline runs.
#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "lib/engine/deferred_weights.h"
#include "lib/engine/pipeline.h"
#include "lib/nn/layers/linear.h"
#include "tests/dist/ranks.h"
#include "tests/engine/one_rank.h"

namespace scaletrain::engine {
namespace {

using core::PipelineKind;

// Writes down what it is called for; owns nothing.
class Listener : public parallel::Placement, public parallel::UnitHooks {
 public:
  const std::vector<units::NamedParameter>& owned() const override { return none_; }
  void start(const parallel::BucketLayout& /*saved*/) override {}
  parallel::UnitHooks* hooks() override { return this; }
  void begin_step(std::int64_t step) override { add("step " + std::to_string(step)); }
  void zero_grad() override { add("zero"); }
  void begin_micro_step(bool synchronize) override { add(synchronize ? "last" : "micro"); }
  void begin_inputs() override { add("inputs"); }
  void begin_weights(bool last) override { add(last ? "last weights(" : "weights("); }
  void end_weights() override { add(")"); }
  void prepare_backward(const at::Tensor& loss) override {
    add(loss.defined() ? "prepare" : "nothing");
  }
  void exchange_rest() override { add("rest"); }
  parallel::BucketLayout layout() const override { return {}; }

  void enter(std::size_t unit, parallel::Pass pass) override { add_unit(unit, pass); }
  void leave(std::size_t unit, parallel::Pass pass) override { add_unit(unit, pass); }
  void end_backward() override { add("end"); }
  bool exchanges() const override { return false; }

  std::string text;

 private:
  void add(const std::string& word) { text += word + " "; }
  // f0 and then f0/, of unit 0's forward.
  void add_unit(std::size_t unit, parallel::Pass pass) {
    std::string& open = pass == parallel::Pass::kForward ? forward_ : backward_;
    const std::string name = (&open == &forward_ ? "f" : "b") + std::to_string(unit);
    add(open == name ? name + "/" : name);
    open = open == name ? "" : name;
  }

  std::vector<units::NamedParameter> none_;
  std::string forward_, backward_;
};

// A step of two micro-batches on rank `env.rank` of two, each of which has two units: embedding and
// block, block and head.
std::string heard(const core::WorkerEnv& env, PipelineKind kind) {
  at::set_num_threads(1);
  const recipe::Recipe recipe = testing::recipe_of_model("llama", {{"vocab_size", std::int64_t{11}},
                                                                   {"positions", std::int64_t{4}},
                                                                   {"dim", std::int64_t{4}},
                                                                   {"depth", std::int64_t{2}},
                                                                   {"heads", std::int64_t{2}},
                                                                   {"kv_heads", std::int64_t{1}}});
  dist::Group group(env, at::kCPU, std::chrono::seconds(30));
  dist::Mesh mesh(group, core::MeshPlan(env.world_size, {.pipe = 2, .replica = {}}));
  const std::shared_ptr<nn::Model> model = nn::make_model(recipe.model, recipe.data.image_size, 1);
  model->train();
  const auto task = task::make_task(recipe, at::kCPU);
  const auto precision = precision::make_precision(recipe.precision, {.avx512 = true});
  PipelineParts parts{.kind = kind, .chunks = 1, .stages = Stages(model->units(), {1, 1, 1, 1}, 2)};
  if (kind == PipelineKind::kZeroBubble) {
    parts.deferred = std::make_shared<DeferredWeights>();
    for (const auto& module : model->modules()) {
      if (const auto linear = std::dynamic_pointer_cast<nn::Linear>(module)) {
        parts.deferred->attach(*linear);
      }
    }
  }
  Pipeline pipeline(mesh, std::move(parts));
  Listener listener;
  Engine engine({*model, *task, *precision, listener, mesh, &pipeline}, /*seed=*/3, {});
  const std::vector<task::Example> examples(2, testing::example_of(recipe, 2, 1));
  testing::SameBatches batches(examples);
  engine.run(7, batches, at::full({}, 0.5), [&](const at::Tensor&) { listener.text += "| "; });
  mesh.end("end");
  return listener.text;
}

struct KindCase {
  PipelineKind kind;
  std::string first, last;  // ranks
};

}  // namespace

TEST_CASE("a placement is called in the order of the pipeline schedule") {
  const KindCase cases[] = {
      {PipelineKind::kOneForward,
       "step 7 zero f0 f0/ f1 f1/ f0 f0/ f1 f1/ micro prepare b1 b1/ b0 b0/ end "
       "| last prepare b1 b1/ b0 b0/ end rest ",
       "step 7 zero f2 f2/ f3 f3/ micro prepare b3 b3/ b2 b2/ end "
       "f2 f2/ f3 f3/ | last prepare b3 b3/ b2 b2/ end rest "},
      {PipelineKind::kZeroBubble,
       "step 7 zero f0 f0/ f1 f1/ f0 f0/ f1 f1/ inputs prepare b1 b1/ b0 b0/ end weights( ) "
       "| inputs prepare b1 b1/ b0 b0/ end last weights( ) rest ",
       "step 7 zero f2 f2/ f3 f3/ inputs prepare b3 b3/ b2 b2/ end "
       "f2 f2/ f3 f3/ | inputs prepare b3 b3/ b2 b2/ end weights( ) last weights( ) rest "},
  };
  for (const KindCase& one : cases) {
    const auto results = testing::run_ranks(
        {.world_size = 2}, [&](const core::WorkerEnv& env) { return heard(env, one.kind); });
    CHECK(results[0].text == one.first);
    CHECK(results[1].text == one.last);
  }
}

}  // namespace scaletrain::engine
