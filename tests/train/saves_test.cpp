#include "lib/train/saves.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>

#include "lib/core/error.h"
#include "lib/core/hash.h"
#include "lib/core/log.h"
#include "lib/format/checkpoint_folder.h"
#include "lib/format/run_requests.h"
#include "lib/train/build.h"
#include "lib/train/trainer.h"
#include "tests/dist/ranks.h"
#include "tests/train/run_support.h"

namespace scaletrain::train {
namespace {

namespace fs = std::filesystem;

using Body = std::function<std::string(Run&, Saves&)>;

// What `body` says of the saves of a tiny run, alone in a process.
std::string said_of(const std::vector<std::string>& changes, const Body& body) {
  const testing::TinyRun tiny;
  return testing::said_apart([&] {
    core::WorkerEnv env;
    env.console_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    const auto run = build_run(tiny.recipe(changes), env, std::nullopt, {});
    Reporter reporter(*run, env, std::nullopt, /*late=*/false);
    Saves saves(*run, reporter);
    return body(*run, saves);
  });
}

std::string steps_in(const fs::path& run) {
  return fmt::format("{}", fmt::join(format::list_checkpoints(run / "checkpoints"), " "));
}

// What a run of `changes` ends with, and which checkpoints it leaves. Nothing can be written to
// its checkpoints' folder where it `is_blocked`.
std::string trained(const std::vector<std::string>& changes, bool is_blocked = false) {
  const testing::TinyRun tiny;
  return testing::said_apart([&] {
    std::string warnings;
    core::set_warning_listener([&](const std::string& line) { warnings += line + "\n"; });
    const recipe::Recipe recipe = tiny.recipe(changes);
    fs::create_directories(recipe.output);
    if (is_blocked) std::ofstream(fs::path(recipe.output) / "checkpoints") << "a file";
    std::string end;
    try {
      end = testing::ended(recipe);
    } catch (const core::StorageError&) {
      end = "a storage error";
    }
    core::set_warning_listener({});
    const bool goes_on = warnings.find("training goes on without") != std::string::npos;
    return fmt::format("{}{}; {}", end, goes_on ? ", warned" : "",
                       is_blocked ? "" : steps_in(recipe.output));
  });
}

}  // namespace

TEST_CASE("a checkpoint is due by its cadence, and when rank 0 has asked") {
  CHECK(said_of({R"(checkpoint.every={"steps": 3})"}, [](Run&, Saves& saves) {
          std::string said;
          for (int step = 1; step <= 6; ++step)
            said += saves.due(step, 0, 0, step == 2) ? 'y' : 'n';
          return said;
        }) == "nyynny");
  CHECK(said_of({"checkpoint.every=auto"}, [](Run&, Saves& saves) {
          std::string said;
          for (int step = 1; step <= 6; ++step)
            said += saves.due(step, 0, 0, step == 2) ? 'y' : 'n';
          return said;
        }) == "nynnnn");
}

TEST_CASE("a person's request is asked for once") {
  CHECK(said_of({}, [](Run& run, Saves& saves) {
          std::string said = saves.asks() ? "asks " : "is silent ";
          format::make_request(core::system_disk(), run.recipe.output, format::kSaveRequest);
          said += saves.asks() ? "asks " : "is silent ";  // it looks once a second
          std::this_thread::sleep_for(std::chrono::milliseconds(1100));
          said += saves.asks() ? "asks " : "is silent ";
          said += saves.asks() ? "asks " : "is silent ";
          saves.save();
          std::this_thread::sleep_for(std::chrono::milliseconds(1100));
          return said + (saves.asks() ? "asks" : "is silent");
        }) == "is silent is silent asks is silent is silent");
}

TEST_CASE("the same step is saved once, but where its state has changed") {
  CHECK(said_of({}, [](Run& run, Saves& saves) {
          const fs::path checkpoint = format::checkpoint_path(run.checkpoints(), 0);
          saves.save();
          saves.finish();
          const auto first = fs::last_write_time(checkpoint);
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          saves.save();
          saves.finish();
          const auto second = fs::last_write_time(checkpoint);
          saves.forget();
          saves.save();
          saves.finish();
          return fmt::format("{} {}", first == second, second == fs::last_write_time(checkpoint));
        }) == "true false");
}

TEST_CASE("auto saves as often as failures make it worth") {
  const std::vector<std::string> changes{"steps=300", "checkpoint.keep_last=1000",
                                         "checkpoint.keep_best=0", "data.val=null",
                                         "checkpoint.every=auto"};
  const auto saves_of = [&](const char* mtbf_hours) {
    std::vector<std::string> with = changes;
    with.push_back(fmt::format("checkpoint.mtbf_hours={}", mtbf_hours));
    const std::string said = trained(with);
    return std::count(said.begin(), said.end(), ' ') - 4;  // "code 0 after step 300; 7 15 300"
  };
  CHECK(saves_of("1e5") == 1);
  CHECK(saves_of("1e-6") > 1);
}

TEST_CASE("a checkpoint that cannot be written ends the run, or not; the last one always does") {
  const std::string every = R"(checkpoint.every={"steps": 1})";
  CHECK(trained({every}) == "code 0 after step 4; 2 3 4");
  CHECK(trained({every, "steps=40"}, /*is_blocked=*/true) == "a storage error; ");
  CHECK(trained({every, "checkpoint.on_failure=continue"}, /*is_blocked=*/true) ==
        "a storage error, warned; ");
}

TEST_CASE("a run that goes on without one checkpoint ends well where the last one is written") {
  const testing::TinyRun tiny;
  CHECK(testing::said_apart([&] {
          core::WorkerEnv env;
          env.console_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
          const auto run =
              build_run(tiny.recipe({"checkpoint.on_failure=continue"}), env, std::nullopt, {});
          Reporter reporter(*run, env, std::nullopt, /*late=*/false);
          Saves saves(*run, reporter);
          const fs::path folder = fs::path(run->recipe.output) / "checkpoints";
          std::ofstream(folder) << "a file";
          saves.save();
          std::this_thread::sleep_for(std::chrono::milliseconds(200));  // it has failed
          fs::remove(folder);
          run->state.step = 1;
          saves.save();
          saves.finish();
          return steps_in(run->recipe.output);
        }) == "1");
}

TEST_CASE("a run that has failed finishes what it has begun, and warns of what cannot be written") {
  for (const bool is_blocked : {false, true}) {
    std::string warnings;
    const std::string said = said_of({}, [&](Run& run, Saves& saves) {
      const fs::path folder = fs::path(run.recipe.output) / "checkpoints";
      if (is_blocked) std::ofstream(folder) << "a file";
      core::set_warning_listener([&](const std::string& line) { warnings += line; });
      saves.save();
      saves.finish_after_failure();
      core::set_warning_listener({});
      const bool has_warned = warnings.find("a checkpoint was not written") != std::string::npos;
      return fmt::format("{}{}", is_blocked ? "" : steps_in(run.recipe.output),
                         has_warned ? "warned" : "");
    });
    CHECK(said == (is_blocked ? "warned" : "0"));
  }
}

// A save lasts longer than a step, so that copies are still to be made when the next one changes
// what they are of.
TEST_CASE("written beside training or not, checkpoints are the same") {
  const auto digests = [](const char* async) {
    const testing::TinyRun tiny;
    return testing::said_apart([&] {
      const recipe::Recipe recipe = tiny.recipe(
          {R"(model={"name": "mlp", "num_classes": 3, "hidden": 2048, "layers": 2})",
           R"(optimizer={"name": "adamw", "lr": 0.01})", "ema.decay=0.5",
           R"(checkpoint.every={"steps": 1})", "checkpoint.keep_last=9", "steps=6", async});
      std::set<std::string> files;
      const std::string ended = testing::ended(recipe);
      for (const auto& entry :
           fs::recursive_directory_iterator(fs::path(recipe.output) / "checkpoints")) {
        if (entry.path().extension() != ".safetensors") continue;
        std::ifstream file(entry.path(), std::ios::binary);
        const std::string bytes(std::istreambuf_iterator<char>(file), {});
        files.insert(fmt::format("{} {:x}", entry.path().lexically_relative(recipe.output).string(),
                                 core::xxh3_64(bytes)));
      }
      return fmt::format("{}; {}", ended, fmt::join(files, "; "));
    });
  };
  const std::string beside = digests("checkpoint.async=true");
  CHECK(std::ranges::count(beside, ';') == 6 * 3);
  CHECK(beside == digests("checkpoint.async=false"));
}

}  // namespace scaletrain::train
