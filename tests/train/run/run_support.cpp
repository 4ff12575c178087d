#include "tests/train/run/run_support.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <exception>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "lib/format/rgb8.h"
#include "lib/recipe/load.h"
#include "lib/train/loop/trainer.h"
#include "tests/dist/ranks.h"
#include "tests/format/tar/tar_support.h"

namespace scaletrain::testing {
namespace {

constexpr std::int64_t kSize = 8;

// `count` images of one grey each; the label is the grey's number modulo 3.
std::string shard(int first, int count) {
  std::string tar;
  for (int i = first; i < first + count; ++i) {
    const std::string pixels(kSize * kSize * 3, static_cast<char>(10 * i));
    tar += format::tar_member(fmt::format("{:03}.rgb8", i),
                              format::rgb8_header({kSize, kSize}) + pixels) +
           format::tar_member(fmt::format("{:03}.cls", i), std::to_string(i % 3));
  }
  return tar + format::tar_end();
}

}  // namespace

TinyRun::TinyRun() {
  folder_.write("train.tar", shard(0, 24));
  folder_.write("val.tar", shard(3, 10));
}

recipe::Recipe TinyRun::recipe(const std::vector<std::string>& changes) const {
  return recipe::parse_recipe(
      fmt::format(R"({{"name": "tiny", "seed": 3, "steps": 4, "threads": 1, "device": "cpu",
        "model": {{"name": "mlp", "num_classes": 3, "hidden": 5, "layers": 1}},
        "data": {{"train": {{"shards": "{0}/train.tar"}}, "val": {{"shards": "{0}/val.tar"}},
                  "image_size": 8, "threads": 1}},
        "batch": {{"per_device": 4}}, "optimizer": {{"name": "sgd", "lr": 0.1, "momentum": 0.9}},
        "output": "{0}/run"}})",
                  folder_.path.string()),
      "tiny.json", changes);
}

std::string ended(const recipe::Recipe& recipe, const std::optional<std::filesystem::path>& resume,
                  core::WorkerEnv env) {
  env.console_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
  std::filesystem::create_directories(recipe.output);
  if (env.rank == 0) {
    std::ofstream(std::filesystem::path(recipe.output) / "recipe.json") << recipe::to_json(recipe);
  }
  train::Trainer trainer(recipe, env, resume, {});
  const auto code = trainer.run();
  return fmt::format("code {} after step {}", static_cast<int>(code), trainer.step());
}

std::string lines(const std::filesystem::path& run) {
  std::ifstream stream(run / "metrics.jsonl");
  std::string text;
  for (std::string line; std::getline(stream, line);) {
    const nlohmann::json json = nlohmann::json::parse(line);
    // These come when it is written.
    if (json.at("event") == "checkpoint" || json.at("event") == "mirror") continue;
    if (json.at("event") == "ledger") continue;
    const std::string split = json.value("split", "");
    text += fmt::format("{}{}{} {}", text.empty() ? "" : ", ", json.at("event").get<std::string>(),
                        split.empty() ? "" : " " + split, json.at("step").get<int>());
  }
  return text;
}

std::string said_apart(const std::function<std::string()>& body) {
  return run_ranks({.world_size = 1}, [&](const core::WorkerEnv&) { return body(); })[0].text;
}

std::string logged_apart(const std::function<void()>& body) {
  return said_apart([&] {
    const test::TemporaryFolder folder;
    const std::string path = folder.file("log");
    dup2(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), STDERR_FILENO);
    try {
      body();
    } catch (const std::exception& error) {
      return fmt::format("error: {}", error.what());
    }
    std::ifstream log(path);
    return std::string(std::istreambuf_iterator<char>(log), {});
  });
}

}  // namespace scaletrain::testing
