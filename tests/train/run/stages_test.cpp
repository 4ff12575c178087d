#include "lib/train/run/stages.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/variable.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <set>

#include "lib/nn/layers/linear.h"
#include "lib/train/model/buffers.h"
#include "lib/train/run/state_shards.h"
#include "tests/dist/ranks.h"
#include "tests/train/meshes_support.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {
namespace {

using namespace std::chrono_literals;
using testing::MeshCase;
using testing::MeshJob;
using testing::run_ranks;

constexpr const char* kVit =
    R"(model={"name": "vit_tiny", "num_classes": 3, "patch_size": 4, "dim": 16, "depth": 4,
              "heads": 2})";

recipe::Parallel two_stages(const char* schedule = "1f1b", std::int64_t tensor = 1) {
  recipe::Parallel parallel;
  parallel.pipeline = 2;
  parallel.tensor = tensor;
  parallel.sequence = tensor > 1;
  parallel.schedule = schedule;
  return parallel;
}

MeshJob job_of(const MeshCase& one, const recipe::Parallel& parallel, const core::WorkerEnv& env) {
  at::set_num_threads(1);
  return {one, parallel, std::make_unique<dist::Group>(env, at::kCPU, 20s)};
}

void check_all_say(const std::vector<testing::RankResult>& results, const std::string& text) {
  for (const auto& result : results) {
    CHECK(result.text == text);
    CHECK(result.status == 0);
  }
}

// What is wrong with the lines that a pipeline of two stages has written, for a vit of 4 blocks.
std::string wrong_with_report(const std::string& path) {
  std::ifstream log(path);
  int stages = 0, all_units = 0, all_percent = 0;
  std::string names;
  for (std::string line; std::getline(log, line);) {
    const std::size_t begin = line.find("pipeline: stage ");
    if (begin == std::string::npos) continue;
    int stage = -1, units = 0, percent = 0;
    char first[64] = "", last[64] = "";
    std::sscanf(line.c_str() + begin, "pipeline: stage %d has %d unit%*[s,] %63s to %63[^,], %d %%",
                &stage, &units, first, last, &percent);
    if (stage != stages++ || percent < 1 || percent > 99) return line;
    all_units += units;
    all_percent += percent;
    names += fmt::format("{} {} ", first, last);
  }
  if (stages != 2 || all_units != 6 || all_percent < 99 || all_percent > 101) {
    return fmt::format("{} stages, {} units, {} %", stages, all_units, all_percent);
  }
  return names.starts_with("stem ") && names.ends_with(" head ") ? "" : names;
}

TEST_CASE("stages of equal time are said with their shares, and training reads from the start") {
  const testing::TinyRun tiny;
  const recipe::Recipe recipe =
      tiny.recipe({kVit, "parallel.pipeline=2", "parallel.balance=time", "batch.accumulate=2"});
  const auto results = run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) -> std::string {
    const std::string log = tiny.path(fmt::format("log{}", env.rank));
    dup2(open(log.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), STDERR_FILENO);
    const auto run = build_run(recipe, env, std::nullopt, {});
    const std::int64_t position = run->sets.train.stream->next()->position;
    run->mesh->end("the end");
    if (position != 0) return fmt::format("reads from {}", position);
    if (env.rank == 0) return wrong_with_report(log);
    std::ifstream written(log);
    return std::string(std::istreambuf_iterator<char>(written), {});
  });
  check_all_say(results, "");
}

TEST_CASE("stages of equal time are those of the checkpoint where it has as many") {
  const testing::TinyRun tiny;
  struct Row {
    const char* balance;
    std::vector<std::int64_t> stored;
    bool is_taken;
  };
  // The model has 6 units: a stage cannot begin with unit 6.
  for (const Row& row :
       {Row{"time", {0, 1}, true}, Row{"time", {0, 5}, true}, Row{"time", {0, 2, 4}, false},
        Row{"time", {0, 6}, false}, Row{"parameters", {0, 5}, false}}) {
    CAPTURE(row.balance);
    CAPTURE(row.stored.back());
    const recipe::Recipe recipe =
        tiny.recipe({kVit, "parallel.pipeline=2", std::string("parallel.balance=") + row.balance,
                     "batch.accumulate=2"});
    const auto results = run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
      const auto run = build_run(recipe, env, std::nullopt, {}, nn::built_in_factories(),
                                 [&](Run& early) { early.state.stage_begins = row.stored; });
      const auto second = static_cast<std::int64_t>(run->pipeline->stages().begin(1));
      const std::vector<std::int64_t> kept = run->state.stage_begins;
      run->mesh->end("the end");
      const bool is_kept = row.balance == std::string("time")
                               ? kept == std::vector<std::int64_t>{0, second}
                               : kept.empty();
      if (!is_kept) return fmt::format("keeps {}", fmt::join(kept, " "));
      return fmt::format("{}", second);
    });
    CHECK(results[0].status == 0);
    CHECK(results[0].text == results[1].text);
    if (row.is_taken) CHECK(results[0].text == fmt::format("{}", row.stored.back()));
  }
}

// Those linear layers whose weight gets its gradient in the first half of a backward.
TEST_CASE("gradients of weights wait, but for those that ranks add up or a loss in chunks asks") {
  const MeshCase mixture{.name = "mixture",
                         .model = "mixtral",
                         .options = {{"vocab_size", std::int64_t{12}},
                                     {"positions", std::int64_t{8}},
                                     {"dim", std::int64_t{16}},
                                     {"depth", std::int64_t{4}},
                                     {"heads", std::int64_t{4}},
                                     {"hidden", std::int64_t{24}},
                                     {"experts", std::int64_t{4}}}};
  for (const std::int64_t chunk : {0, 3}) {
    CAPTURE(chunk);
    MeshCase one = mixture;
    one.chunk = chunk;
    const auto results =
        run_ranks({.world_size = 4}, [&](const core::WorkerEnv& env) -> std::string {
          MeshJob job = job_of(one, two_stages("zero_bubble", 2), env);
          std::set<std::string> at_once, expected;
          for (const auto& item : job.run.learner.model->named_modules("", false)) {
            auto* const linear = dynamic_cast<nn::Linear*>(item.value().get());
            const std::string name = item.key() + ".weight";
            if (linear == nullptr || !job.run.pipeline->has(name)) continue;
            const at::Tensor weight = linear->named_parameters(false)["weight"];
            const bool is_router = name.ends_with("gate.weight");
            if (is_router || (chunk > 0 && name == "lm_head.weight")) expected.insert(name);
            weight.register_hook([&at_once, name](const at::Tensor& gradient) {
              if (gradient.defined()) at_once.insert(name);
            });
          }
          job.step(0, 1);
          job.run.mesh->end("the end");
          if (at_once == expected) return "";
          return fmt::format("{} in place of {}", fmt::join(at_once, " "),
                             fmt::join(expected, " "));
        });
    check_all_say(results, "");
  }
}

TEST_CASE("what stages use together is counted by the first of them") {
  const MeshCase tied{.name = "tied", .model = "gpt2", .options = testing::small_gpt2()};
  const auto results = run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) -> std::string {
    const MeshJob job = job_of(tied, two_stages(), env);
    std::string counted;
    for (const units::NamedParameter& own : job.run.engine->owned()) {
      if (own.name.ends_with("wte.weight")) counted = own.counts ? "counts" : "has";
    }
    job.run.mesh->end("the end");
    return counted;
  });
  CHECK(results[0].text == "counts");
  CHECK(results[1].text == "has");
}

TEST_CASE("a rank's parts are those of its stages, at each level, and lie where they are asked") {
  const testing::TinyRun tiny;
  struct Row {
    std::string level, more;
    bool has_frozen, on_host;
  };
  for (const Row& row :
       {Row{"optimizer", "", false, false}, Row{"gradients", "", false, false},
        Row{"parameters", "", true, false},
        Row{"parameters", R"(offload={"parameters": true, "optimizer": true})", true, true}}) {
    CAPTURE(row.level);
    std::vector<std::string> changes{kVit,
                                     "parallel.pipeline=2",
                                     "parallel.shard=2",
                                     "batch.accumulate=2",
                                     R"(model.freeze=["blocks.0.*", "blocks.3.*"])",
                                     "parallel.shard_level=" + row.level};
    if (!row.more.empty()) changes.push_back(row.more);
    const recipe::Recipe recipe = tiny.recipe(changes);
    const auto results =
        run_ranks({.world_size = 4}, [&](const core::WorkerEnv& env) -> std::string {
          const auto run = build_run(recipe, env, std::nullopt, {});
          std::string wrong;
          bool has_frozen = false;
          for (const units::NamedParameter& part : run->placement->sharded_parameters()) {
            has_frozen = has_frozen || !part.tensor.requires_grad();
            if (!run->pipeline->has(part.name)) wrong += part.name + " is another stage's; ";
            if ((part.on_host != nullptr) != row.on_host) wrong += part.name + " lies elsewhere; ";
          }
          if (has_frozen != row.has_frozen) wrong += "frozen; ";
          run->mesh->end("the end");
          return wrong;
        });
    check_all_say(results, "");
  }
}

TEST_CASE("buffers of a pipeline are on all ranks as the stage that runs them knows them") {
  const MeshCase net{.name = "BatchNorm", .model = "resnet18", .options = {}, .in_doubles = true};
  const auto results = run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) -> std::string {
    MeshJob job = job_of(net, two_stages(), env);
    NamedTensors buffers;
    for (const auto& item : job.run.learner.model->named_buffers()) {
      buffers.emplace(item.key(), at::full_like(item.value(), env.rank));
    }
    share_buffers(job.run, buffers);
    std::string wrong = buffers.empty() ? "none" : "";
    for (const auto& [name, tensor] : buffers) {
      const int stage = job.run.pipeline->places_of(name).front();
      if (!tensor.eq(stage).all().item<bool>()) wrong += name + " ";
    }
    job.run.mesh->end("the end");
    return wrong;
  });
  check_all_say(results, "");
}

TEST_CASE("rows of the last stage are on all ranks, with their number and type") {
  const MeshCase text{.name = "text", .model = "gpt2", .options = testing::small_gpt2()};
  for (const int count : {0, 3}) {
    CAPTURE(count);
    const auto results =
        run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) -> std::string {
          const MeshJob job = job_of(text, two_stages(), env);
          const at::Tensor last = at::arange(2 * count, at::kDouble).view({count, 2});
          const at::Tensor own = env.rank == 1 ? last : at::empty({0, 2}, at::kDouble);
          const at::Tensor all = of_last_stage(job.run, own);
          job.run.mesh->end("the end");
          return all.sizes() == last.sizes() && all.equal(last) ? "" : "other rows";
        });
    check_all_say(results, "");
  }
}

}  // namespace
}  // namespace scaletrain::train
