// What is planned of a job without its ranks, against ranks that run it: what each owns, what it
// gives to exchanges, and that all ranks of a group ask for the same in the same order. A layout is
// a line.
#include "lib/train/simulate/job_plan.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "lib/precision/precision.h"
#include "lib/train/build/build.h"
#include "lib/train/model/number_types.h"
#include "lib/train/run/stages.h"
#include "lib/train/simulate/blank_batch.h"
#include "tests/dist/ranks.h"
#include "tests/engine/one_rank.h"
#include "tests/train/simulate/plan_cases.h"
#include "tests/train/simulate/recorded.h"

namespace scaletrain::train::job_plan_test {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using testing::experts;
using testing::kGpt2;
using testing::kLlama;
using testing::kMixtral;
using testing::kVit;
using testing::narrow;
using testing::rings;
using testing::shards;
using testing::stages;
using testing::stages_in_parts;
using testing::tensors;

constexpr int kRanks = 4;

struct Case {
  const char* name;
  const char* model;
  testing::PlanOptions options;
  recipe::Parallel parallel = {};
  std::int64_t micro_steps = 1;
  bool recomputes = false;
  const char* compress = "";
};

recipe::Recipe recipe_of(const Case& one) {
  recipe::Recipe recipe = testing::recipe_of_model(one.model, one.options);
  recipe::choose(recipe.optimizer, *recipe::optimizers().find("adamw"));
  recipe.seed = 1;
  recipe.data.context = 8;
  recipe.batch.per_device = 2;
  recipe.batch.accumulate = one.micro_steps;
  recipe.batch.global.reset();
  recipe.parallel = one.parallel;
  // What is gathered as bf16 autocast takes.
  if (one.parallel.types) recipe::choose(recipe.precision, *recipe::precisions().find("bf16"));
  if (*one.compress != '\0') recipe.compress = recipe::Compress{.name = one.compress, .rank = 2};
  if (one.recomputes)
    recipe.recompute = recipe::Recompute{.units = "all", .every = {}, .match = {}};
  return recipe;
}

std::vector<Case> cases() {
  std::vector<Case> result{{"copies", "gpt2", kGpt2},
                           {"copies, accumulated", "vit_tiny", kVit, {}, 3},
                           {"copies of a ResNet", "resnet18", {}}};
  for (const char* const level : {"optimizer", "gradients", "parameters"}) {
    result.push_back({"shards", "gpt2", kGpt2, shards(4, level), 2});
    result.push_back({"shards of copies", "llama", kLlama, shards(2, level), 2});
  }
  result.push_back({"recomputed shards", "gpt2", kGpt2, shards(4, "parameters"), 1, true});
  for (const bool sequence : {false, true}) {
    result.push_back({"tensor", "gpt2", kGpt2, tensors(4, sequence)});
    result.push_back({"tensor of copies", "llama", kLlama, tensors(2, sequence), 2});
    result.push_back({"tensor, recomputed", "llama", kLlama, tensors(4, sequence), 1, true});
  }
  result.push_back({"tensor", "vit_tiny", kVit, tensors(2, false)});
  for (const char* const schedule : {"gpipe", "1f1b", "interleaved", "zero_bubble"}) {
    result.push_back({"stages", "llama", kLlama, stages(4, schedule), 8});
    result.push_back({"stages of copies", "gpt2", kGpt2, stages(2, schedule), 4});
  }
  result.push_back({"experts", "mixtral", kMixtral, experts(4), 2});
  result.push_back({"experts of copies", "mixtral", kMixtral, experts(2)});
  for (const char* const level : {"optimizer", "gradients", "parameters"}) {
    result.push_back({"experts, shards", "mixtral", kMixtral, experts(4, shards(2, level)), 2});
  }
  for (const bool sequence : {false, true}) {
    result.push_back({"tensor, all experts", "mixtral", kMixtral, tensors(2, sequence)});
    result.push_back({"experts, tensor", "mixtral", kMixtral, experts(2, tensors(2, sequence)), 2});
  }
  result.push_back({"experts, stages", "mixtral", kMixtral, experts(2, stages(2, "1f1b")), 4});
  for (const char* const schedule : {"1f1b", "interleaved", "zero_bubble"}) {
    for (const char* const level : {"optimizer", "gradients", "parameters"}) {
      result.push_back({"stages in parts", "gpt2", kGpt2, stages_in_parts(level, schedule), 4});
    }
    result.push_back({"stages of rings", "llama", kLlama, rings(2, stages(2, schedule)), 4});
  }
  result.push_back({"rings", "llama", kLlama, rings(4)});
  result.push_back({"rings of copies", "llama", kLlama, rings(2), 2});
  result.push_back({"rings, recomputed", "llama", kLlama, rings(4), 1, true});
  result.push_back({"rings of shards", "llama", kLlama, rings(2, shards(2, "parameters")), 2});
  result.push_back({"rings of tensors", "llama", kLlama, rings(2, tensors(2, false))});
  result.push_back({"rings, all experts", "mixtral", kMixtral, rings(2), 2});
  result.push_back({"rings, experts", "mixtral", kMixtral, rings(2, experts(2)), 2});
  // Without fast bf16, which is planned for, ranks gather weights as fp32.
  if (precision::multiplies_bf16({.device = at::kCPU})) {
    result.push_back({"narrow shards", "llama", kLlama, narrow(shards(4, "parameters")), 2});
    result.push_back(
        {"narrow stages", "llama", kLlama, narrow(stages_in_parts("parameters", "1f1b")), 4});
  }
  for (const char* const name : {"bf16", "int8", "onebit", "powersgd"}) {
    result.push_back({"compressed copies", "gpt2", kGpt2, {}, 1, false, name});
  }
  for (const char* const name : {"bf16", "int8", "onebit"}) {
    result.push_back(
        {"compressed copies of shards", "llama", kLlama, shards(2, "gradients"), 1, false, name});
  }
  result.push_back(
      {"compressed copies of stages", "llama", kLlama, stages(2, "1f1b"), 2, false, "powersgd"});
  result.push_back({"compressed experts", "mixtral", kMixtral, experts(2), 1, false, "bf16"});
  return result;
}

void step(Run& run, const std::optional<units::TokenCut>& cut, std::int64_t number) {
  BlankBatches batches(run, cut);
  run.engine->run(number, batches, at::full({}, 1.0), [](const at::Tensor&) {});
  run.engine->weights_changed();
}

std::int64_t bytes_of(const std::vector<at::Tensor>& tensors) {
  std::int64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) bytes += static_cast<std::int64_t>(tensor.nbytes());
  return bytes;
}

// Of the tensors that have memory.
std::int64_t kept_bytes(const std::vector<at::Tensor>& tensors) {
  std::int64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.storage().nbytes() > 0) bytes += static_cast<std::int64_t>(tensor.nbytes());
  }
  return bytes;
}

// The memory that the tensors lie in, each block once.
std::int64_t memory_of(const std::vector<at::Tensor>& tensors) {
  std::map<const void*, std::int64_t> blocks;
  for (const at::Tensor& tensor : tensors) {
    blocks[tensor.storage().unsafeGetStorageImpl()] =
        static_cast<std::int64_t>(tensor.storage().nbytes());
  }
  std::int64_t bytes = 0;
  for (const auto& [block, size] : blocks) bytes += size;
  return bytes;
}

// What a rank has, and what it asks its groups for in the second step: the first one tells stages
// the shapes of activations.
Json run_rank(const Case& one, std::unique_ptr<dist::Group> own) {
  Run run;
  run.recipe = recipe_of(one);
  run.group = std::move(own);
  const core::MeshPlan plan(kRanks, run.recipe.parallel.mesh());
  run.mesh = std::make_unique<dist::Mesh>(*run.group, plan);
  run.task = task::make_task(run.recipe, at::kCPU);
  run.batch = recipe::divide_batch(run.recipe.batch, plan.readers());
  run.learner = build_learner(run.recipe, at::kCPU, {.steps_per_epoch = 1, .total_steps = 1},
                              run.batch.global, nn::built_in_factories(), run.mesh.get());
  run.learner.model->train();
  const std::optional<units::TokenCut> cut = open_token_cut(*run.mesh);
  place(run);
  run.learner.optimizer = make_optimizer(run.recipe, run.engine->owned());
  run.placement->start({});
  drop_other_stages(run);

  step(run, cut, 0);
  const std::int64_t exchanged = run.placement->exchanged_bytes();
  testing::Recorder recorder;
  step(run, cut, 1);
  Json result{{"exchanged", run.placement->exchanged_bytes() - exchanged}};
  for (const auto& [group, calls] : recorder.take()) {
    Json list = Json::array();
    for (const auto& call : calls) {
      // How many tokens a rank's experts get the router decides.
      const bool is_fixed = call.kind != "alltoall_base_";
      list.push_back({call.kind, is_fixed ? call.bytes : 0, is_fixed ? call.elements : 0});
    }
    result["calls"][group] = list;
  }
  std::vector<at::Tensor> held = run.learner.model->buffers(), parts, state;
  for (const units::NamedParameter& part : run.placement->sharded_parameters())
    parts.push_back(part.tensor);
  if (one.parallel.shard_level != "parameters" || one.parallel.shard == 1) {
    const std::vector<at::Tensor> parameters = run.learner.model->parameters();
    held.insert(held.end(), parameters.begin(), parameters.end());
    parts.clear();
  }
  for (const auto& [name, shard] : run.learner.optimizer->state()) state.push_back(shard.tensor);
  result["parameters"] = kept_bytes(held) + memory_of(parts);
  result["gradients"] = bytes_of(run.engine->gradients());
  const core::GradientPeak peak =
      run.placement->gradient_peak(run.batch.accumulate > 1 || one.parallel.pipeline > 1);
  result["gradients in backward"] = peak.backward;
  result["gradients in the exchange"] = peak.exchange;
  result["optimizer"] = bytes_of(state);
  std::int64_t unsent = 0;
  for (const auto& [name, shard] : run.placement->state()) {
    unsent += 2 * static_cast<std::int64_t>(shard.tensor.nbytes());
  }
  result["unsent"] = unsent;
  run.mesh->end("the test");
  return result;
}

// Returns what each case gives this rank.
std::string run_cases(const core::WorkerEnv& env) {
  at::set_num_threads(1);
  dist::Group world(env, at::kCPU, 60s, core::Beat(), {}, dist::CpuExchange::kGloo);
  Json all = Json::array();
  for (const Case& one : cases()) {
    all.push_back(run_rank(
        one, std::make_unique<dist::Group>(world, std::vector<int>{0, 1, 2, 3},
                                           fmt::format("case {}, {}", all.size(), one.name))));
  }
  world.end("the cases");
  return all.dump();
}

// c10d's names of what is planned.
std::string op_of(dist::FakeKind kind) {
  switch (kind) {
    case dist::FakeKind::kAllReduce:
      return "allreduce_";
    case dist::FakeKind::kAllGather:
      return "_allgather_base_";
    case dist::FakeKind::kReduceScatter:
      return "_reduce_scatter_base_";
    case dist::FakeKind::kAllToAll:
      return "alltoall_base_";
    case dist::FakeKind::kBroadcast:
      return "broadcast_";
    case dist::FakeKind::kGather:
      return "gather_";
  }
  return "";
}

// The names that groups have which carry what is planned for an axis (lib/dist/mesh.cpp and
// pipe_links.cpp); "connect" is the whole job's.
std::string axis_of(const std::string& group, const core::MeshPlan& mesh) {
  if (group.starts_with("activations from") || group.starts_with("gradients from") ||
      group.starts_with("tied")) {
    return "pipeline";
  }
  for (const char* const name : {"data of", "replica of", "gradients of", "copies of"}) {
    if (group.starts_with(name)) return "replica";
  }
  if (group.starts_with("experts of") || group.starts_with("same experts")) return "expert";
  if (group.starts_with("context")) return "context";  // its group, and the ring's links
  if (group.starts_with("shard of")) return "shard";
  if (group.starts_with("tensor of")) return "tensor";
  if (mesh.size(core::Axis::kShard) == mesh.world_size()) return "shard";
  if (mesh.size(core::Axis::kContext) == mesh.world_size()) return "context";
  return mesh.size(core::Axis::kTensor) == mesh.world_size() ? "tensor" : "replica";
}

using Sums = std::map<std::string, std::pair<std::int64_t, std::int64_t>>;  // calls, bytes

std::string text_of(const Sums& sums) {
  std::string text;
  for (const auto& [what, sum] : sums) {
    text += fmt::format("{}: {} of {} bytes\n", what, sum.first, sum.second);
  }
  return text;
}

Sums planned_sums(const RankPlan& rank) {
  Sums sums;
  for (const Traffic& one : rank.traffic) {
    auto& sum = sums[one.axis + " " + op_of(one.kind)];
    sum.first += one.calls;
    sum.second += one.what == "tokens" ? 0 : one.bytes;
  }
  return sums;
}

// Of a link a rank's own sends count.
Sums seen(const Json& result, int rank, const core::MeshPlan& mesh) {
  Sums sums;
  for (const auto& [group, calls] : result.at("calls").items()) {
    const bool is_link = group.find("from rank") != std::string::npos;
    if (is_link && group.find(fmt::format("from rank {} to", rank)) == std::string::npos) continue;
    for (const Json& call : calls) {
      auto& sum = sums[axis_of(group, mesh) + " " + call[0].get<std::string>()];
      sum.first += 1;
      sum.second += call[1].get<std::int64_t>();
    }
  }
  return sums;
}

// Returns what is planned of each rank of each case.
std::string plan_cases() {
  at::set_num_threads(1);
  Json all = Json::array();
  for (const Case& one : cases()) {
    const JobPlan job = plan_job(recipe_of(one), kRanks, nn::built_in_factories(), {0, 1, 2, 3});
    Json ranks = Json::array();
    for (const RankPlan& rank : job.ranks) {
      ranks.push_back({{"parameters", rank.parameters},
                       {"gradients", rank.gradients},
                       {"gradients in backward", rank.gradient_peak.backward},
                       {"gradients in the exchange", rank.gradient_peak.exchange},
                       {"optimizer", rank.optimizer},
                       {"unsent", rank.unsent},
                       {"traffic", text_of(planned_sums(rank))}});
    }
    all.push_back(std::move(ranks));
  }
  return all.dump();
}

TEST_CASE("what is planned is what ranks own and exchange, and groups ask in one order") {
  const auto ranks = testing::run_ranks({.world_size = kRanks, .limit_s = 290}, run_cases);
  // In a process of its own: this one must not start threads.
  const auto plans = testing::run_ranks({.world_size = 1, .limit_s = 290},
                                        [](const core::WorkerEnv&) { return plan_cases(); });
  REQUIRE_MESSAGE(plans[0].status == 0, plans[0].text);
  const Json planned = Json::parse(plans[0].text);
  std::vector<Json> found;  // by rank
  for (const auto& rank : ranks) {
    REQUIRE_MESSAGE(rank.status == 0, rank.text);
    found.push_back(Json::parse(rank.text));
  }
  for (std::size_t i = 0; i < cases().size(); ++i) {
    const Case one = cases()[i];
    CAPTURE(fmt::format("{} {} {} {}", one.name, one.model, one.parallel.shard_level,
                        one.parallel.schedule));
    CAPTURE(one.parallel.sequence);
    CAPTURE(std::string(one.compress));
    const core::MeshPlan mesh(kRanks, one.parallel.mesh());
    std::map<std::string, std::string> order;  // of each group, as its first rank has it
    for (int rank = 0; rank < kRanks; ++rank) {
      CAPTURE(rank);
      const Json& result = found[static_cast<std::size_t>(rank)].at(i);
      const Json& expected = planned.at(i)[static_cast<std::size_t>(rank)];
      for (const char* const kind : {"parameters", "gradients", "gradients in backward",
                                     "gradients in the exchange", "optimizer", "unsent"}) {
        CAPTURE(kind);
        CHECK(result.at(kind) == expected.at(kind));
      }
      CHECK(text_of(seen(result, rank, mesh)) == expected.at("traffic").get<std::string>());
      for (const auto& [group, calls] : result.at("calls").items()) {
        const auto [first, is_new] = order.emplace(group, calls.dump());
        if (!is_new) CHECK(first->second == calls.dump());
      }
    }
  }
}

}  // namespace
}  // namespace scaletrain::train::job_plan_test
