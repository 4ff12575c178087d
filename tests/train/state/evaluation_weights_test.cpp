#include "lib/train/state/evaluation_weights.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/train/build/build.h"
#include "lib/train/loop/evaluate.h"
#include "lib/train/state/snapshot.h"
#include "tests/checkpoint/contents_support.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {
namespace {

// A run whose optimizer has taken two steps: y, where gradients are taken, and the average x
// differ.
std::unique_ptr<Run> averaging_run(const testing::TinyRun& tiny) {
  auto run = build_run(tiny.recipe({R"(optimizer={"name": "schedule_free_adamw", "lr": 0.1})"}), {},
                       std::nullopt, {});
  for (const double gradient : {1.0, -0.5}) {
    for (const units::NamedParameter& parameter : run->engine->owned()) {
      at::Tensor tensor = parameter.tensor;
      tensor.mutable_grad() = at::full(tensor.sizes(), gradient);
    }
    run->learner.optimizer->step(0.1);
  }
  return run;
}

double loss_of(Run& run) { return evaluate(run, task::Split::kVal).measures.back().value; }

NamedTensors copies(const NamedTensors& tensors) {
  NamedTensors result;
  for (const auto& [name, tensor] : tensors) result.emplace(name, tensor.clone());
  return result;
}

// Whether all tensors of `a` are those of `b`.
bool same(const NamedTensors& a, const NamedTensors& b) {
  for (const auto& [name, tensor] : a) {
    if (!at::equal(tensor, b.at(name))) return false;
  }
  return a.size() == b.size();
}

}  // namespace

TEST_CASE("nothing is evaluated in place of the weights of an optimizer that averages none") {
  const testing::TinyRun tiny;
  CHECK(testing::said_apart([&] {
          const auto run = build_run(tiny.recipe(), {}, std::nullopt, {});
          return fmt::format("{}", evaluated_tensors(*run).size());
        }) == "0");
}

TEST_CASE("averages are evaluated and saved, and training goes on from what they are not") {
  const testing::TinyRun tiny;
  const std::string said = testing::said_apart([&] {
    const auto run = averaging_run(tiny);
    const NamedTensors before = copies(run->learner.tensors());
    const NamedTensors averages = evaluated_tensors(*run);
    const double loss = loss_of(*run);
    const checkpoint::FullContents saved(snapshot(*run));
    std::string text = fmt::format(
        "untouched {}, differ {}, saved {}, resumes {}; ", same(before, run->learner.tensors()),
        !same(before, averages), same(averages, saved.model),
        at::equal(saved.optimizer.at("y/head.weight"), before.at("head.weight")));
    run->learner.end_training();
    const bool settled = same(averages, run->learner.tensors()) && evaluated_tensors(*run).empty();
    return text + fmt::format("settled {}, same loss {}", settled, loss_of(*run) == loss);
  });
  CHECK(said ==
        "untouched true, differ true, saved true, resumes true; settled true, same loss true");
}

TEST_CASE("averaged weights are swapped into the model and back") {
  const testing::TinyRun tiny;
  CHECK(testing::said_apart([&] {
          const auto run = build_run(tiny.recipe({"ema={}"}), {}, std::nullopt, {});
          const at::Tensor weight = run->learner.tensors().at("head.weight");
          const at::Tensor own = weight.clone();
          run->means[0]->state().at("head.weight").tensor.fill_(0.5);
          std::string said;
          {
            const MeanInPlace in_place(*run, *run->means[0]);
            said = fmt::format("{}", weight[0][0].item<float>());
          }
          return said + (at::equal(weight, own) ? ", then its own" : ", then another");
        }) == "0.5, then its own");
}

}  // namespace scaletrain::train
