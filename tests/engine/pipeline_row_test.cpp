// What a pipeline knows of its stages, and what it keeps of a step: two ranks, no model.
#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/autograd.h>

#include <string>
#include <vector>

#include "lib/engine/deferred_weights.h"
#include "lib/engine/pipeline.h"
#include "tests/dist/ranks.h"

namespace scaletrain::engine {
namespace {

using namespace std::chrono_literals;
using core::PipelineKind;

// Five units, of which some share tensors: "all" is of each, "odd" of the second and the fourth.
std::vector<units::Unit> five_units() {
  return {{.name = "0", .tensors = {"all"}, .run = {}},
          {.name = "1", .tensors = {"all", "odd"}, .run = {}},
          {.name = "2", .tensors = {"all"}, .run = {}},
          {.name = "3", .tensors = {"all", "odd"}, .run = {}},
          {.name = "4", .tensors = {"all", "late"}, .run = {}}};
}

// The first stage has the first two units.
Stages four_stages() { return {five_units(), {1, 1, 2, 2, 2}, 4}; }

TEST_CASE("a rank's stages are every second one, and each tensor's places go by the ranks") {
  const auto results = testing::run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    dist::Group world(env, at::kCPU, 30s);
    dist::Mesh mesh(world, core::MeshPlan(2, {.pipe = 2, .replica = {}}));
    const Pipeline pipeline(
        mesh, {.kind = PipelineKind::kInterleaved, .chunks = 2, .stages = four_stages()});
    std::string text = fmt::format("{}", pipeline.own_units());
    for (const char* const name : {"all", "odd", "late", "none"}) {
      text += fmt::format("; {} {}{}{}", name, pipeline.places_of(name),
                          pipeline.has(name) ? " has" : "", pipeline.counts(name) ? " counts" : "");
    }
    mesh.end("end");
    return text;
  });
  // Stages 0 to 3 have the units 0 and 1, 2, 3, 4.
  CHECK(results[0].text ==
        "[true, true, false, true, false]; all [0, 1] has counts; odd [0] has counts; late [1]; "
        "none []");
  CHECK(results[1].text ==
        "[false, false, true, false, true]; all [0, 1] has; odd [0]; late [1] has counts; "
        "none []");
}

// Of the tensors that were shown to it, how many still are.
class Alive {
 public:
  void add(const at::Tensor& tensor) { seen_.emplace_back(tensor.getIntrusivePtr()); }
  int count() const {
    int alive = 0;
    for (const auto& one : seen_) alive += one.expired() ? 0 : 1;
    return alive;
  }

 private:
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>> seen_;
};

constexpr int kMicros = 4;

// A step of one rank, whose stage adds a parameter; the most that lay there of inputs and outputs
// beside those of micro-batches whose backward was still to come, and of micro-batches read.
std::string most_kept(dist::Mesh& mesh, PipelineParts parts) {
  const bool reads = mesh.coordinate(core::Axis::kPipe) == 0;
  Pipeline pipeline(mesh, std::move(parts));
  const at::Tensor parameter = at::ones({3}).requires_grad_();
  Alive batches, flows;
  int under_way = 0, flows_kept = 0, batches_kept = 0;
  const auto look = [&] {
    batches_kept = std::max(batches_kept, batches.count());
    flows_kept = std::max(flows_kept, flows.count() - under_way * (reads ? 1 : 2));
  };
  pipeline.run(
      {.micro_batches = kMicros,
       .next =
           [&] {
             look();
             task::Example example{.input = at::zeros({3}), .target = {}};
             batches.add(example.input);
             return example;
           },
       .forward =
           [&](int /*stage*/, std::int64_t /*micro*/, const task::Example& /*example*/,
               units::Flow input) {
             units::Flow output{parameter * 2,
                                at::zeros({1}, at::kLong)};  // the second has no gradient
             if (!reads) {
               flows.add(input[0]);
               output = {(output[0] + input[0]).sum()};
             }
             flows.add(output[0]);
             ++under_way;
             return output;
           },
       .backward =
           [&](const units::Flow& roots, const units::Flow& gradients, bool /*keeps_weights*/) {
             torch::autograd::backward(roots, gradients);
             --under_way;
           },
       .weights = [](const std::function<void()>& compute, bool /*last*/) { compute(); },
       .before_last_backward = [] {}});
  return fmt::format("{} {}", flows_kept, batches_kept);
}

TEST_CASE("behind its backward nothing is kept of a micro-batch, behind its forward no sample") {
  for (const PipelineKind kind :
       {PipelineKind::kGPipe, PipelineKind::kOneForward, PipelineKind::kZeroBubble}) {
    const auto results = testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
      dist::Group world(env, at::kCPU, 30s);
      dist::Mesh mesh(world, core::MeshPlan(2, {.pipe = 2, .replica = {}}));
      PipelineParts parts{.kind = kind, .stages = {five_units(), {1, 1, 1, 1, 1}, 2}};
      if (kind == PipelineKind::kZeroBubble) parts.deferred = std::make_shared<DeferredWeights>();
      const std::string text = most_kept(mesh, std::move(parts));
      mesh.end("end");
      return text;
    });
    CAPTURE(static_cast<int>(kind));
    CHECK(results[0].text == "0 0");
    CHECK(results[1].text == "0 0");
  }
}

}  // namespace
}  // namespace scaletrain::engine
