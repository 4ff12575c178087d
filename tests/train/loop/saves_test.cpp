#include "lib/train/loop/saves.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "lib/core/descriptor.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/plan/save_interval.h"
#include "lib/core/process/beat.h"
#include "lib/core/text/hash.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/run_requests.h"
#include "lib/train/build/build.h"
#include "lib/train/loop/trainer.h"
#include "tests/dist/ranks.h"
#include "tests/temporary_folder.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

struct Watched {
  Run& run;
  Saves& saves;
  core::BeatReader beat;
  std::string console;  // a file

  std::string told() const {
    std::ifstream file(console);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // "checkpoint 2 mirror 2" of metrics.jsonl.
  std::string records() const {
    std::ifstream file(fs::path(run.recipe.output) / "metrics.jsonl");
    std::string text;
    for (std::string line; std::getline(file, line);) {
      const nlohmann::json json = nlohmann::json::parse(line);
      const std::string event = json.at("event");
      if (event != "checkpoint" && event != "mirror") continue;
      text += fmt::format("{}{} {}", text.empty() ? "" : " ", event, json.at("step").get<int>());
    }
    return text;
  }
};

// What `body` says of the saves of a tiny run whose beat and console it sees, alone in a process.
std::string watched(const std::vector<std::string>& changes,
                    const std::function<std::string(Watched&)>& body) {
  const testing::TinyRun tiny;
  return testing::said_apart([&] {
    const std::string console = tiny.path("console");
    core::WorkerEnv env;
    env.console_fd = open(console.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const core::Descriptor file = core::make_beat_file();
    const auto run = build_run(tiny.recipe(changes), env, std::nullopt, core::Beat(file.get()));
    Reporter reporter(*run, env, std::nullopt, /*late=*/false);
    Saves saves(*run, reporter);
    Watched the{*run, saves, core::BeatReader(file.get()), console};
    return body(the);
  });
}

std::string said_of(const std::vector<std::string>& changes,
                    const std::function<std::string(Run&, Saves&)>& body) {
  return watched(changes, [&](Watched& the) { return body(the.run, the.saves); });
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
    const bool goes_on = warnings.find("training continues without") != std::string::npos;
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
          said += saves.asks() ? "asks " : "is silent ";
          format::make_request(core::system_disk(), run.recipe.output, format::kSaveRequest);
          said += saves.asks() ? "asks " : "is silent ";
          std::this_thread::sleep_for(std::chrono::milliseconds(1100));
          return said + (saves.asks() ? "asks" : "is silent");
        }) == "is silent is silent asks is silent is silent is silent asks");
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

TEST_CASE("what a run goes on from is not saved once more") {
  const testing::TinyRun tiny;
  CHECK(testing::said_apart([&] {
          const auto run = build_run(tiny.recipe(), {}, std::nullopt, {});
          run->state.step = 3;
          run->is_saved = true;
          Reporter reporter(*run, {}, std::nullopt, /*late=*/false);
          Saves saves(*run, reporter);
          saves.save();
          saves.finish();
          return fs::exists(run->checkpoints()) ? "saved" : "not saved";
        }) == "not saved");
}

TEST_CASE("what is durable is reported at the next look, in the end, or at once with async false") {
  const auto reported = [](const char* async, const std::function<void(Watched&)>& afterwards) {
    return watched({async}, [&](Watched& the) {
      the.run.state.step = 2;
      the.saves.save();
      afterwards(the);
      return the.records();
    });
  };
  const char* const beside = "checkpoint.async=true";
  const std::string report = "checkpoint 2";
  CHECK(reported(beside, [](Watched& the) {
          for (int i = 0; i < 1000 && the.records().empty(); ++i) {
            std::this_thread::sleep_for(10ms);
            the.saves.look();
          }
        }) == report);
  CHECK(reported(beside, [](Watched& the) { the.saves.finish(); }) == report);
  CHECK(reported(beside, [](Watched& the) { the.saves.finish_after_failure(); }) == report);
  CHECK(reported("checkpoint.async=false", [](Watched& /*the*/) {}) == report);
}

TEST_CASE("a copy in the second place is reported at the next look") {
  const test::TemporaryFolder copies;
  CHECK(watched({"checkpoint.mirror=" + copies.file("copies")}, [&](Watched& the) {
          the.saves.save();
          for (int i = 0; i < 1000 && the.records() != "checkpoint 0 mirror 0"; ++i) {
            std::this_thread::sleep_for(10ms);
            the.saves.look();
          }
          return the.records();
        }) == "checkpoint 0 mirror 0");
}

// With async false training waits for the disk, whose progress is a beat too.
TEST_CASE("the launcher sees that training saves, and that the disk that it waits for goes on") {
  const auto beats = [](const char* async) {
    const std::string text = watched({async}, [](Watched& the) {
      the.run.beat.enter(core::Phase::kCompute);
      const std::uint64_t before = the.beat.state().count;
      the.saves.save();
      return fmt::format("{} {}", core::to_text(the.beat.state().phase),
                         the.beat.state().count - before);
    });
    CHECK(text.starts_with("saving "));
    return std::stoi(text.substr(7));
  };
  const int beside = beats("checkpoint.async=true");
  CHECK(beats("checkpoint.async=false") > beside);
}

TEST_CASE("auto begins with a tenth of the time between failures, and says what comes next") {
  CHECK(watched({"checkpoint.every=auto", "checkpoint.mtbf_hours=1e-3"}, [](Watched& the) {
          std::string said;
          const auto ask = [&] { said += the.saves.asks() ? "asks " : "is silent "; };
          ask();
          std::this_thread::sleep_for(400ms);  // of 360
          ask();
          ask();  // it has asked
          the.saves.save();
          ask();
          return said;
        }) == "is silent asks is silent is silent ");
  const std::string told =
      watched({"checkpoint.every=auto", "checkpoint.mtbf_hours=2"}, [](Watched& the) {
        the.saves.save();
        the.saves.finish();
        return the.told();
      });
  const std::string begin = "the next checkpoint comes after ";
  const std::size_t at = told.find(begin);
  REQUIRE(at != std::string::npos);
  double interval = 0, stall = 0, write = 0;
  REQUIRE(std::sscanf(told.c_str() + at + begin.size(),
                      "%lf s: one costs training %lf s and is written in %lf s, and a failure is "
                      "expected every 2 h",
                      &interval, &stall, &write) == 3);
  // What is said is rounded.
  CHECK(interval >=
        std::max(core::best_interval(std::max(0.0, stall - 0.0005), 7200), 10 * (write - 0.005)) -
            0.05);
  CHECK(interval <=
        std::max(core::best_interval(stall + 0.0005, 7200), 10 * (write + 0.005)) + 0.05);
  CHECK(watched({}, [](Watched& the) {
          the.saves.save();
          the.saves.finish();
          return the.told();
        }).find(begin) == std::string::npos);
}

TEST_CASE("\"auto\" saves at the interval of Daly's estimate") {
  const std::vector<std::string> changes{
      "steps=300",     "checkpoint.keep_last=1000", "checkpoint.keep_best=0",
      "data.val=null", "checkpoint.every=auto",     "optimizer.lr=1e-4"};
  const auto saves_of = [&](const char* mtbf_hours) {
    std::vector<std::string> with = changes;
    with.push_back(fmt::format("checkpoint.mtbf_hours={}", mtbf_hours));
    const std::string said = trained(with);
    const std::string end = "code 0 after step 300; ";  // and behind it steps: "7 15 300"
    REQUIRE(said.substr(0, end.size()) == end);
    return std::count(said.begin() + std::ssize(end), said.end(), ' ') + 1;
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
      bool has_warned = false;
      try {
        saves.save();
      } catch (const core::StorageError&) {  // the writer was faster than save()
        has_warned = true;
      }
      saves.finish_after_failure();
      core::set_warning_listener({});
      has_warned |= warnings.find("a checkpoint was not written") != std::string::npos;
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
