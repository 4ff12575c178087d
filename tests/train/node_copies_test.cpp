#include "lib/train/node_copies.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/format/checkpoint_folder.h"
#include "lib/replica/fetch.h"
#include "tests/dist/ranks.h"
#include "tests/replica/node_support.h"
#include "tests/train/run_support.h"

namespace scaletrain::train {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kChanges{
    "checkpoint.replicate={}", "checkpoint.every={\"steps\": 1}", "log.every={\"steps\": 1}"};

core::WorkerEnv env_of(const std::vector<const test::Node*>& nodes) {
  core::WorkerEnv env;
  env.replicas = replica::to_text(test::addresses_of(nodes));
  env.group_world_size = static_cast<int>(nodes.size());
  return env;
}

// "1 of 2 nodes, ..." of the lines of metrics.jsonl.
std::string replicas_in(const fs::path& run) {
  std::ifstream stream(run / "metrics.jsonl");
  std::string text;
  for (std::string line; std::getline(stream, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.at("event") != "replica") continue;
    text += fmt::format("{}{} of {} nodes", text.empty() ? "" : ", ", json.at("step").get<int>(),
                        json.at("nodes").get<int>());
  }
  return text;
}

}  // namespace

TEST_CASE("each checkpoint of a run is in the memory of its nodes, and comes back the same") {
  const testing::TinyRun tiny;
  CHECK(testing::said_apart([&] {
          const test::Node own, next;
          const recipe::Recipe recipe = tiny.recipe(kChanges);
          std::string said = testing::ended(recipe, std::nullopt, env_of({&own, &next}));
          const test::TemporaryFolder other;
          const auto back = replica::fetch_newest(core::system_disk(), {next.address()},
                                                  other.path / "checkpoints", -1,
                                                  [&](const std::string& text) { said += text; });
          const fs::path saved = fs::path(recipe.output) / "checkpoints/step-00000004";
          bool is_same = back.has_value();
          for (const auto& file : fs::directory_iterator(saved)) {
            is_same = is_same && test::read_bytes(file.path()) ==
                                     test::read_bytes(back->checkpoint / file.path().filename());
          }
          return fmt::format("{}; {}; {}; {}; {}", said, own.steps(), next.steps(),
                             replicas_in(recipe.output), is_same ? "same" : "other");
        }) ==
        "code 0 after step 4; 3* 4*; 3* 4*; 1 of 2 nodes, 2 of 2 nodes, 3 of 2 nodes, 4 of 2 "
        "nodes; same");
}

TEST_CASE("linked files are in the memory too") {
  const testing::TinyRun tiny;
  CHECK(testing::said_apart([&] {
          const test::Node own, next;
          std::vector<std::string> changes = kChanges;
          changes.insert(changes.end(),
                         {"checkpoint.incremental=true", "model.freeze=fc1.*", "model.layers=2"});
          const recipe::Recipe recipe = tiny.recipe(changes);
          std::string said = testing::ended(recipe, std::nullopt, env_of({&own, &next}));
          const test::TemporaryFolder other;
          const auto back = replica::fetch_newest(core::system_disk(), {next.address()},
                                                  other.path / "checkpoints", -1,
                                                  [&](const std::string& text) { said += text; });
          return fmt::format("{}; {}", said, back ? back->step : -1);
        }) == "code 0 after step 4; 4");
}

TEST_CASE("a node that is gone costs its copy, once with a warning, and not the run") {
  const testing::TinyRun tiny;
  const std::string said = testing::said_apart([&] {
    const test::Node own;
    auto next = std::make_unique<test::Node>();
    const core::WorkerEnv env = env_of({&own, next.get()});
    next.reset();
    std::string warned;
    core::set_warning_listener([&](const std::string& line) { warned += line + "\n"; });
    const recipe::Recipe recipe = tiny.recipe(kChanges);
    const std::string end = testing::ended(recipe, std::nullopt, env);
    core::set_warning_listener({});
    return end + "; " + own.steps() + "; " + replicas_in(recipe.output) + "\n" + warned;
  });
  CAPTURE(said);
  CHECK(said.starts_with("code 0 after step 4; 4; \n"));  // none that counts
  const auto count = [&](const std::string& text) {
    int found = 0;
    for (auto at = said.find(text); at != std::string::npos; at = said.find(text, at + 1)) ++found;
    return found;
  };
  CHECK(count("it gets no copies of checkpoints") == 1);
  CHECK(count("it has no copy of the checkpoint of step 1") == 1);
  CHECK(count("of memory") == 0);
  CHECK(count("is in the memory of 1 nodes, and two are needed") == 1);
}

TEST_CASE("a node that has not the room for two checkpoints ends the run before it begins") {
  const testing::TinyRun tiny;
  const std::string said = testing::said_apart([&] {
    const test::Node own, next(1000);
    try {
      return testing::ended(tiny.recipe(kChanges), std::nullopt, env_of({&own, &next}));
    } catch (const core::OutOfMemoryError& error) {
      return std::string(error.what());
    }
  });
  CHECK(said ==
        "the memory of node 127.0.0.1: copies of two checkpoints take 0.0 MB of it, and three "
        "quarters of what is free are 0.0 MB\n"
        "  use nodes with more memory, or: --set checkpoint.replicate=null");
}

}  // namespace scaletrain::train
