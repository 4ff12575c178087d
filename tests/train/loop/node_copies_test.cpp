#include "lib/train/loop/node_copies.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/hashed_file.h"
#include "lib/replica/fetch.h"
#include "lib/train/build/build.h"
#include "tests/dist/ranks.h"
#include "tests/replica/node_support.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kChanges{
    "checkpoint.replicate={}", "checkpoint.every={\"steps\": 1}", "log.every={\"steps\": 1}"};

core::WorkerEnv env_of(const std::vector<const test::Node*>& nodes) {
  core::WorkerEnv env;
  env.secret_fd = test::secret_fd();
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

// Rank 0 of a run that says something to a console, and copies whose nodes' room nobody asks for.
struct Copying {
  Copying(const testing::TinyRun& tiny, const std::vector<replica::Address>& nodes)
      : env(env_of_other(nodes)),
        run(build_run(tiny.recipe(), env, {}, {})),
        reporter(*run, env, {}, /*late=*/false),
        copies(make_node_copies(*run, reporter, env, /*all_write=*/false)) {
    core::set_warning_listener([this](const std::string& line) { warned += line + "\n"; });
  }

  // A checkpoint of one file.
  void save(std::int64_t step, std::size_t bytes) {
    const auto path = format::publish_checkpoint(
        copies->disk(), folder.path, {.program = "test", .step = step}, 1000,
        [&](const fs::path& temporary) {
          const std::string text(bytes, 'x');
          return format::FileEntries{
              {"file", format::write_hashed(copies->disk(), temporary / "file", text)}};
        });
    copies->published({.path = path, .step = step});
  }

  static core::WorkerEnv env_of_other(const std::vector<replica::Address>& nodes) {
    core::WorkerEnv env;
    env.local_rank = 1;
    env.console_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    env.secret_fd = test::secret_fd();
    env.replicas = replica::to_text(nodes);
    return env;
  }

  test::TemporaryFolder folder;
  std::string warned;
  core::WorkerEnv env;
  std::unique_ptr<Run> run;
  Reporter reporter;
  std::unique_ptr<NodeCopies> copies;
};

int count_of(const std::string& said, const std::string& text) {
  int found = 0;
  for (auto at = said.find(text); at != std::string::npos; at = said.find(text, at + 1)) ++found;
  return found;
}

// The address of the next of three ranks, once it has told it, as this one does of its own.
std::string next_address(const test::TemporaryFolder& told, int rank, const std::string& own) {
  const auto name = [](int of) { return fmt::format("rank-{}", of); };
  fs::rename(told.write(name(rank) + ".tmp", own), told.path / name(rank));
  const std::string next = name((rank + 1) % 3);
  while (!fs::exists(told.path / next)) usleep(1000);
  return told.read(next);
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
  CHECK(count_of(said, "it gets no copies of checkpoints") == 1);
  CHECK(count_of(said, "it has no copy of the checkpoint of step 1") == 1);
  CHECK(count_of(said, "of memory") == 0);
  CHECK(count_of(said, "is in the memory of 1 node, and two are needed") == 1);
}

TEST_CASE("missing peer checkpoints are reported again after they were complete") {
  const testing::TinyRun tiny;
  const std::string said = testing::said_apart([&] {
    const test::Node own, small(20'000);
    Copying one(tiny, test::addresses_of({&own, &small}));
    std::int64_t step = 0;
    for (const std::size_t bytes : {100, 30'000, 30'000, 100, 30'000}) one.save(++step, bytes);
    one.copies->look();
    return one.warned + replicas_in(one.run->recipe.output);
  });
  CAPTURE(said);
  for (int step = 1; step <= 5; ++step) {
    CHECK(count_of(said, fmt::format("it has no copy of the checkpoint of step {}\n", step)) ==
          (step == 2 || step == 5 ? 1 : 0));
  }
  CHECK(said.ends_with("\n1 of 2 nodes, 4 of 2 nodes"));
}

TEST_CASE("waiting for a silent node ends as soon as the job gives up") {
  const testing::TinyRun tiny;
  const auto results = testing::run_ranks({.world_size = 1}, [&](const core::WorkerEnv&) {
    int port = 0;
    testing::listen_on_free_port(port);
    Copying one(tiny, {{.hosts = {"127.0.0.1"}, .port = port, .secret = test::kSecret}});
    one.copies->give_up();
    one.save(1, 100);
    return one.warned;
  });
  CHECK(count_of(results[0].text, "it has no copy of the checkpoint of step 1") == 1);
  CHECK(results[0].seconds < 10);  // half of what a node has for each answer
}

TEST_CASE("where each rank writes a share, all nodes together hold each checkpoint") {
  const testing::TinyRun tiny;
  const test::TemporaryFolder told;
  std::vector<std::string> changes = kChanges;
  changes.insert(changes.end(), {"checkpoint.writers=all", R"(batch={"per_device": 2})"});
  const recipe::Recipe recipe = tiny.recipe(changes);
  const auto results = testing::run_ranks({.world_size = 3}, [&](const core::WorkerEnv& given) {
    const test::Node own;
    core::WorkerEnv env = given;
    env.local_rank = 0;
    env.group_rank = given.rank;
    env.group_world_size = 3;
    env.secret_fd = test::secret_fd();
    env.replicas = replica::to_text({own.address()});
    env.replicas += " " + next_address(told, given.rank, env.replicas);
    const std::string end = testing::ended(recipe, std::nullopt, env);
    return end + "; " + own.steps();
  });
  for (const auto& result : results) CHECK(result.text == "code 0 after step 4; 3* 4*");
  CHECK(replicas_in(recipe.output) == "1 of 3 nodes, 2 of 3 nodes, 3 of 3 nodes, 4 of 3 nodes");
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

TEST_CASE("a node needs room for two states, or for what some ranks write of them") {
  constexpr std::int64_t kStates = 2 * 2 * 4 * (5 * 192 + 5 + 3 * 5 + 3);  // with the momentum
  struct Case {
    bool all_write;
    std::int64_t needed;
    int said_nodes;
  };
  // Of three nodes each holds what its own ranks write and those of one more.
  const std::vector<Case> cases{{false, kStates, 2}, {true, 2 * ((kStates + 2) / 3), 3}};
  const testing::TinyRun tiny;
  const std::string console = tiny.path("console");
  const auto results = testing::run_ranks({.world_size = 2}, [&](core::WorkerEnv env) {
    std::string said;
    const auto run = build_run(tiny.recipe({R"(batch={"per_device": 2})"}), env, {}, {});
    env.group_world_size = 3;
    env.console_fd = open(console.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (env.rank == 0) {
      Reporter reporter(*run, env, {}, /*late=*/false);
      for (const Case& one : cases) {
        for (const std::int64_t room : {one.needed, one.needed - 1}) {
          const test::Node own, next(room);
          env.secret_fd = test::secret_fd();
          env.replicas = replica::to_text(test::addresses_of({&own, &next}));
          try {
            said += make_node_copies(*run, reporter, env, one.all_write) ? "room, " : "none, ";
          } catch (const core::OutOfMemoryError&) {
            said += "no room, ";
          }
        }
      }
    }
    run->mesh->end("end");
    return said;
  });
  CHECK(results[0].text == "room, no room, room, no room, ");
  std::ifstream shown(console);
  for (const Case& one : cases) {
    std::string line;
    while (std::getline(shown, line) && line.find("checkpoints are copied") == std::string::npos) {
    }  // the start block stands before
    CHECK(line.find(fmt::format("checkpoints are copied to the memory of {} nodes: at most 0.0 MB",
                                one.said_nodes)) != std::string::npos);
  }
}

}  // namespace scaletrain::train
