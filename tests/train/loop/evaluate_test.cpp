#include "lib/train/loop/evaluate.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/process/beat.h"
#include "lib/core/process/signals.h"
#include "lib/format/rgb8.h"
#include "lib/train/build/build.h"
#include "tests/dist/ranks.h"
#include "tests/format/tar/tar_support.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {
namespace {

// The loss of the whole validation set at once, in evaluation mode.
double loss_at_once(Run& run) {
  const at::NoGradGuard no_grad;
  data::BatchStream& stream = *run.sets.stream(task::Split::kVal);
  stream.seek({});
  run.learner.model->eval();
  double sum = 0;
  while (const auto batch = stream.next()) {
    const task::Example example = run.task->prepare(*batch, false);
    sum += at::cross_entropy_loss(run.learner.model->forward(example.input), example.target, {},
                                  at::Reduction::Sum)
               .item<double>();
  }
  run.learner.model->train();
  return sum / 10;
}

std::string measured(const EvalResult& result) {
  std::string text;
  for (const auto& [measure, value] : result.measures) {
    text += fmt::format("{} {:.4f} ", measure->name, value);
  }
  return text;
}

using namespace std::chrono_literals;

struct Spread {
  int ranks, asked;  // how many, and the one that is asked to stop
  std::vector<std::string> changes;
};

const std::string kTinyVit = R"(model={"name": "vit_tiny", "num_classes": 3, "patch_size": 4,
                                       "dim": 8, "depth": 1, "heads": 2})";

// One rank, and two that: run alone, wait for each other's forward, read the same, are stages.
std::vector<Spread> spreads(int per_device) {
  const std::string batch = fmt::format("batch.per_device={}", per_device);
  return {{1, 0, {batch}},
          {2, 1, {batch}},
          {2, 1, {batch, "parallel.shard=2", "parallel.shard_level=parameters"}},
          {2, 1, {batch, kTinyVit, "parallel.tensor=2"}},
          {2, 0, {batch, kTinyVit, "batch.accumulate=2", "parallel.pipeline=2"}}};
}

// What each rank says of its evaluation.
std::vector<std::string> said_of(const recipe::Recipe& recipe, int ranks,
                                 const std::function<std::string(Run&, int rank)>& evaluated) {
  std::vector<std::string> texts;
  for (const auto& result :
       testing::run_ranks({.world_size = ranks}, [&](const core::WorkerEnv& env) {
         at::set_num_threads(1);
         core::install_stop_handlers();
         const auto run = build_run(recipe, env, std::nullopt, {});
         std::string said = evaluated(*run, env.rank);
         run->mesh->end("end");
         return said;
       })) {
    texts.push_back(result.text);
  }
  return texts;
}

}  // namespace

TEST_CASE("every sample is measured once, in evaluation mode, and training goes on as before") {
  const testing::TinyRun tiny;
  const std::string said = testing::said_apart([&] {
    const auto run = build_run(tiny.recipe({"model.dropout=0.5"}), {}, std::nullopt, {});
    const double expected = loss_at_once(*run);
    const EvalResult first = evaluate(*run, task::Split::kVal);
    const EvalResult again = evaluate(*run, task::Split::kVal);
    return fmt::format("{} {} {} {} {}", first.count,
                       std::abs(first.measures.back().value - expected) < 1e-6,
                       measured(first) == measured(again), run->learner.model->is_training(),
                       first.measures.front().measure->name);
  });
  CHECK(said == "10 true true true top1");
}

TEST_CASE("the whole set is measured on any number of ranks") {
  const testing::TinyRun tiny;
  const std::string one = testing::said_apart([&] {
    return measured(evaluate(*build_run(tiny.recipe(), {}, std::nullopt, {}), task::Split::kVal));
  });
  for (const auto& result : testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
         return measured(
             evaluate(*build_run(tiny.recipe(), env, std::nullopt, {}), task::Split::kVal));
       })) {
    CHECK(result.text == one);
  }
}

TEST_CASE("measures that are no sums are of all samples on any number of ranks") {
  const testing::TinyRun tiny;
  const auto recipe = tiny.recipe({"task=multi_label_classification", "loss=binary_cross_entropy"});
  const std::string one = testing::said_apart([&] {
    const auto run = build_run(recipe, {}, std::nullopt, {});
    const std::string said = measured(evaluate(*run, task::Split::kVal));
    return measured(evaluate(*run, task::Split::kVal)) == said ? said : "not the same again";
  });
  CHECK(one.starts_with("map 0."));
  CHECK(!one.starts_with("map 0.0000"));  // as where nothing has a score
  CHECK(one.find("micro_f1") != std::string::npos);
  for (const int ranks : {2, 3}) {
    for (const auto& result :
         testing::run_ranks({.world_size = ranks}, [&](const core::WorkerEnv& env) {
           const auto run = build_run(recipe, env, std::nullopt, {});
           std::string said = measured(evaluate(*run, task::Split::kVal));
           run->mesh->end("end");
           return said;
         })) {
      CHECK(result.text == one);
    }
  }
}

TEST_CASE("metrics of ranks with the same data-parallel rank count once") {
  const testing::TinyRun tiny;
  for (const auto& result : testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
         const auto run =
             build_run(tiny.recipe({kTinyVit, "parallel.tensor=2"}), env, std::nullopt, {});
         std::string said = fmt::format("{}", evaluate(*run, task::Split::kVal).count);
         run->mesh->end("end");
         return said;
       })) {
    CHECK(result.text == "10");  // both have read all of them
  }
}

TEST_CASE("ranks that exchange in forward have as many batches as the one that has most") {
  const testing::TinyRun tiny;
  const auto changes = spreads(4)[2].changes;  // ten samples: rank 0 has two batches, rank 1 one
  const std::string one = testing::said_apart([&] {
    return measured(evaluate(*build_run(tiny.recipe(), {}, std::nullopt, {}), task::Split::kVal));
  });
  const auto all = [](Run& run, int /*rank*/) {
    return measured(evaluate(run, task::Split::kVal));
  };
  for (const std::string& text : said_of(tiny.recipe(changes), 2, all)) {
    CHECK(text == one);
  }
}

TEST_CASE("a stop that one rank is asked for cuts it short on all") {
  const testing::TinyRun tiny;
  for (const auto& [ranks, asked, changes] : spreads(1)) {
    CAPTURE(fmt::to_string(fmt::join(changes, " ")));
    const int signal = ranks == 1 ? SIGINT : SIGTERM;
    const auto both = [&](Run& run, int rank) {
      std::string said;
      for (const bool stops : {false, true}) {
        if (stops && rank == asked) std::raise(signal);
        bool first = true;  // it takes so long that others are asked whether to stop
        const EvalResult result =
            evaluate(run, task::Split::kVal, [&](const auto&, const auto&, const auto&) {
              if (std::exchange(first, false)) std::this_thread::sleep_for(600ms);
            });
        said += fmt::format("{} {}, ", result.count == 10, static_cast<int>(result.stop));
      }
      return said;
    };
    for (const std::string& text : said_of(tiny.recipe(changes), ranks, both)) {
      CHECK(text == fmt::format("true 0, false {}, ", signal == SIGINT ? 2 : 1));
    }
  }
}

TEST_CASE("a bad sample is counted once, and listed by one of the ranks that read it") {
  const testing::TinyRun tiny;
  std::string tar;
  for (int i = 0; i < 3; ++i) {
    const std::string pixels(i == 1 ? 5 : 192, 'x');  // of 192
    tar += format::tar_member(fmt::format("{}.rgb8", i), format::rgb8_header({8, 8}) + pixels) +
           format::tar_member(fmt::format("{}.cls", i), "1");
  }
  std::ofstream(tiny.path("bad.tar")) << tar + format::tar_end();
  const std::vector<std::string> skip{fmt::format("data.val.shards={}", tiny.path("bad.tar")),
                                      "data.bad_samples.policy=skip"};
  for (auto [ranks, asked, changes] : spreads(1)) {
    CAPTURE(fmt::to_string(fmt::join(changes, " ")));
    changes.insert(changes.end(), skip.begin(), skip.end());
    std::string listed;
    const auto counts = [](Run& run, int /*rank*/) {
      const EvalResult result = evaluate(run, task::Split::kVal);
      return fmt::format("{} {} {}", result.count, result.skipped, result.bad_samples.size());
    };
    for (const std::string& text : said_of(tiny.recipe(changes), ranks, counts)) {
      CHECK(text.starts_with("2 1 "));
      listed += text.back();
    }
    CHECK(std::count(listed.begin(), listed.end(), '1') == 1);
    CHECK(std::count(listed.begin(), listed.end(), '0') == ranks - 1);
  }
}

TEST_CASE("it is seen to measure at each batch") {
  const testing::TinyRun tiny;
  CHECK(testing::said_apart([&] {
          const core::Descriptor file = core::make_beat_file();
          const core::BeatReader reader(file.get());
          const auto run = build_run(tiny.recipe(), {}, std::nullopt, core::Beat(file.get()));
          std::string said;
          evaluate(*run, task::Split::kVal, [&](const auto&, const auto&, const auto&) {
            said += fmt::format("{} ", core::to_text(reader.state().phase));
          });
          return said;
        }) == "validating validating validating ");
}

// The optimizer's average is zeros, so that all three classes are as likely.
TEST_CASE("ranks that have parts of an average measure with the whole, and train on without") {
  const testing::TinyRun tiny;
  const recipe::Recipe recipe =
      tiny.recipe({R"(optimizer={"name": "schedule_free_adamw", "lr": 0.1})", "parallel.shard=2",
                   "parallel.shard_level=optimizer"});
  const auto average = [](Run& run, int /*rank*/) {
    const at::Tensor weight = run.learner.model->named_parameters()["head.weight"];
    const at::Tensor before = weight.clone();
    const NamedTensors state = local_tensors(run.learner.optimizer->state());
    for (const auto& [name, tensor] : state) {  // beta1 is 0.9
      if (name.starts_with("z_minus_y/")) tensor.copy_(9 * state.at("y/" + name.substr(10)));
    }
    const EvalResult result = evaluate(run, task::Split::kVal);
    return fmt::format("{:.4f} {}", result.measures.back().value, weight.equal(before));
  };
  for (const std::string& text : said_of(recipe, 2, average)) {
    CHECK(text == "1.0986 true");  // log 3
  }
}

TEST_CASE("a set whose samples are all bad is an error, one without samples is none") {
  EvalResult result;
  CHECK_NOTHROW(require_samples(result, "val"));
  result.skipped = 3;
  CHECK_THROWS_WITH_AS(require_samples(result, "val"),
                       "/data/val: none of its 3 samples can be used\n"
                       "  look at the warnings above, and repair the set: scaletrain data check",
                       core::DataError);
  result.count = 1;
  CHECK_NOTHROW(require_samples(result, "val"));
}

}  // namespace scaletrain::train
