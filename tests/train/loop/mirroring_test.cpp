#include "lib/train/loop/mirroring.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/train/build/build.h"
#include "lib/train/loop/saves.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> mirrored_changes(const testing::TinyRun& tiny,
                                          const std::vector<std::string>& changes) {
  std::vector<std::string> all{"checkpoint.mirror=" + tiny.path("copies"),
                               R"(checkpoint.every={"steps": 1})", "checkpoint.keep_last=9"};
  all.insert(all.end(), changes.begin(), changes.end());
  return all;
}

std::string steps_below(const fs::path& folder) {
  return fmt::format("{}", fmt::join(format::list_checkpoints(folder / "checkpoints"), " "));
}

// Of the records of copies: "4 " where it was sent, "(4) " where it was there.
std::string copies_in(const fs::path& run) {
  std::ifstream stream(run / "metrics.jsonl");
  std::string text;
  for (std::string line; std::getline(stream, line);) {
    const nlohmann::json json = nlohmann::json::parse(line);
    if (json.at("event") != "mirror") continue;
    CHECK(json.at("copy_time") >= 0);
    CHECK(json.at("behind") >= 0);
    const int step = json.at("step");
    text += json.at("bytes") > 0 ? fmt::format("{} ", step) : fmt::format("({}) ", step);
  }
  return text;
}

// How a run ends whose copies' folder is a file where it `is_blocked`, and what it warns of.
std::string ended_mirrored(const std::vector<std::string>& changes, bool is_blocked) {
  const testing::TinyRun tiny;
  return testing::said_apart([&] {
    std::string warnings;
    core::set_warning_listener([&](const std::string& line) { warnings += line + "\n"; });
    const recipe::Recipe recipe = tiny.recipe(mirrored_changes(tiny, changes));
    if (is_blocked) std::ofstream(recipe.checkpoint.mirror) << "a file";
    std::string end;
    try {
      end = testing::ended(recipe);
    } catch (const core::Error& error) {
      end = fmt::format("error {}", static_cast<int>(error.exit_code()));
      const bool says_what = error.found().find(" bytes was copied there") != std::string::npos &&
                             error.found().find("checkpoint of 0 bytes") == std::string::npos;
      end += says_what ? "" : fmt::format(": {}", error.found());
    }
    core::set_warning_listener({});
    const bool goes_on =
        warnings.find("training continues without a copy of a checkpoint of ") != std::string::npos;
    const bool lacks = warnings.find("has no copy of the last checkpoint") != std::string::npos;
    return fmt::format("{}{}{}; {}; {}", end, goes_on ? ", goes on" : "", lacks ? ", lacks" : "",
                       steps_below(recipe.output),
                       is_blocked ? "" : steps_below(recipe.checkpoint.mirror));
  });
}

}  // namespace

TEST_CASE("the last checkpoint of a run is in its second place when the run ends") {
  const testing::TinyRun tiny;
  CHECK(testing::said_apart([&] {
          const recipe::Recipe recipe = tiny.recipe(mirrored_changes(tiny, {}));
          const std::string end = testing::ended(recipe);
          const fs::path own = fs::path(recipe.output) / "checkpoints";
          const fs::path copy = fs::path(recipe.checkpoint.mirror) / "checkpoints";
          const bool same = format::model_digest(format::checkpoint_path(own, 4)) ==
                            format::model_digest(format::checkpoint_path(copy, 4));
          const std::string copies = copies_in(recipe.output);
          return fmt::format("{} {} {}", end, same, copies.ends_with("4 "));
        }) == "code 0 after step 4 true true");
}

TEST_CASE("a second place that fails ends the run, or not, and the run's own folder is whole") {
  CHECK(ended_mirrored({}, false).starts_with("code 0 after step 4; 1 2 3 4; "));
  CHECK(ended_mirrored({"steps=3"}, true).starts_with("error 74; "));
  CHECK(ended_mirrored({"checkpoint.on_failure=continue"}, true) ==
        "code 0 after step 4, goes on, lacks; 1 2 3 4; ");
}

TEST_CASE("a run that goes on copies what is not there yet first") {
  const testing::TinyRun tiny;
  CHECK(testing::said_apart([&] {
          const recipe::Recipe without = tiny.recipe({});
          testing::ended(without);
          const recipe::Recipe recipe = tiny.recipe(mirrored_changes(tiny, {}));
          core::WorkerEnv env;
          env.console_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
          const fs::path checkpoint =
              format::checkpoint_path(fs::path(recipe.output) / "checkpoints", 4);
          std::string said;
          for (int i = 0; i < 2; ++i) {
            const auto run = build_run(recipe, env, checkpoint, {});
            Reporter reporter(*run, env, checkpoint, /*late=*/false);
            Saves saves(*run, reporter);
            saves.finish();
          }
          return copies_in(recipe.output);
        }) == "4 (4) ");
}

TEST_CASE("a stop waits so long for the last copy, and no longer") {
  const testing::TinyRun tiny;
  CHECK(testing::said_apart([&] {
          std::string warnings;
          core::set_warning_listener([&](const std::string& line) { warnings += line; });
          core::WorkerEnv env;
          env.console_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
          const auto run =
              build_run(tiny.recipe(mirrored_changes(tiny, {})), env, std::nullopt, {});
          Reporter reporter(*run, env, std::nullopt, /*late=*/false);
          Saves saves(*run, reporter);
          saves.save();
          saves.finish(-1);  // no time is left
          core::set_warning_listener({});
          const bool says =
              warnings.find("has no copy of the last checkpoint yet, which ") != std::string::npos;
          saves.finish();
          return fmt::format("{} {}", says, steps_below(tiny.path("copies")));
        }) == "true 0");
}

}  // namespace scaletrain::train
