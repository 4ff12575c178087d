// Replicas of a tiny run that are apart, each in a process of its own, whose steps are the test's.
#pragma once

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/core/process/beat.h"
#include "lib/train/build/build.h"
#include "tests/dist/ranks.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::testing {

// One matrix, and a buffer.
class BufferModel : public nn::Model {
 public:
  BufferModel()
      : weight_(register_parameter("weight", at::zeros({3, 3 * 8 * 8}))),
        seen_(register_buffer("seen", at::zeros({2}))) {}
  std::vector<units::Unit> units() override {
    return {unit("all", {""}, [this](units::Flow flow, const units::Context&) -> units::Flow {
      return {flow[0].flatten(1).matmul(weight_.t())};
    })};
  }
  void initialise(const std::string& /*name*/, const at::Tensor& logical,
                  at::Generator /*generator*/) const override {
    logical.zero_();
  }

 private:
  at::Tensor weight_, seen_;
};

// Its weights are its rank's number, and so is its buffer.
struct ApartReplica {
  // Of 8 steps and exchanges behind every fourth, unless `changes` say otherwise.
  ApartReplica(const TinyRun& tiny, const core::WorkerEnv& env,
               const std::vector<std::string>& changes)
      : file(core::make_beat_file()), beat(file.get()), rank(env.rank) {
    nn::Factories models("model");
    models.add("mlp", [](const recipe::Model&, std::int64_t) -> std::shared_ptr<nn::Model> {
      return std::make_shared<BufferModel>();
    });
    std::vector<std::string> all{
        "steps=8", R"(batch={"per_device": 2})",
        R"(sync={"name": "diloco", "steps": 4, "outer": {"lr": 1, "momentum": 0.9}})",
        "checkpoint.keep_best=0"};
    all.insert(all.end(), changes.begin(), changes.end());
    run = train::build_run(tiny.recipe(all), env, {}, core::Beat(file.get()), models);
    for (const auto& [name, tensor] : run->learner.tensors()) tensor.fill_(rank);
  }

  // Takes steps, in which it learns nothing.
  void come_to(std::int64_t step) {
    for (; run->state.step < step; ++run->state.step) {
      run->replicas->after_step(run->state.step);
    }
  }

  // The phase that the launcher sees behind `action`, before which it is another one.
  std::string_view phase_of(const std::function<void()>& action) {
    run->beat.enter(core::Phase::kCompute);
    action();
    return core::to_text(beat.state().phase);
  }

  double weight() const { return run->learner.tensors().at("weight")[0][0].item<double>(); }
  // What was given to this one: "buffers/seen [0 1 2]", of each name and replica the first value.
  std::string given() const {
    std::string text;
    for (const auto& [name, tensor] : run->replicas->states().tensors) {
      const at::Tensor first = tensor.reshape({tensor.size(0), -1}).select(1, 0);
      text += name + " [";
      for (std::int64_t i = 0; i < first.size(0); ++i) {
        text += fmt::format("{}{:g}", i == 0 ? "" : " ", first[i].item<double>());
      }
      text += "] ";
    }
    for (const std::int64_t replica : run->replicas->states().present)
      text += std::to_string(replica);
    return text.empty() ? "nothing" : text;
  }
  // "5 left, 5 lost, 5" of the replicas in their order.
  std::string membership() const {
    std::string text;
    for (const local_sgd::ReplicaProgress& place : run->replicas->membership()) {
      text += fmt::format("{}{}{}{}", text.empty() ? "" : ", ", place.steps,
                          place.has_left ? " left" : "", place.is_lost ? " lost" : "");
    }
    return text;
  }

  core::Descriptor file;
  core::BeatReader beat;
  const int rank;
  std::unique_ptr<train::Run> run;
};

// Runs three replicas with a grace period; returns their texts.
inline std::vector<RankResult> run_apart(const std::vector<std::string>& changes,
                                         const std::function<std::string(ApartReplica&)>& body,
                                         double grace_s = 30) {
  const TinyRun tiny;
  return run_ranks({.world_size = 3}, [&](core::WorkerEnv env) {
    env.grace_s = grace_s;
    ApartReplica replica(tiny, env, changes);
    return body(replica);
  });
}

}  // namespace scaletrain::testing
