#include "lib/track/exports.h"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <mutex>

#include "lib/core/error.h"
#include "tests/temporary_folder.h"

namespace scaletrain::track {
namespace {

using Lines = std::vector<std::string>;

// A run folder with two training records and a journal, and its exports.
struct Exported : test::TemporaryFolder {
  Exported() {
    write("metrics.jsonl",
          "{\"event\":\"train\",\"attempt\":0,\"step\":1,\"loss\":2.5,\"time\":100.5}\n"
          "{\"event\":\"train\",\"attempt\":0,\"step\":2,\"loss\":2.0,\"time\":100.5}\n");
    write("journal.jsonl",
          "{\"event\":\"finished\",\"step\":9}\n"
          "{\"event\":\"attempt_started\",\"attempt\":0}\n{\"event\":\"finished\",\"step\":2}\n");
  }

  // Exports all that is there, and returns the summary.
  Lines run(const std::vector<std::string>& names, const EventOptions& events = {}) {
    Exports exports(names, {.run = path, .name = "run"}, events, [this](const std::string& line) {
      const std::lock_guard lock(mutex);
      warnings.push_back(line);
    });
    CHECK(exports.finish(core::now() + std::chrono::minutes(1)));
    lost_some = exports.lost_some();
    return exports.summary();
  }

  std::mutex mutex;
  Lines warnings;
  bool lost_some = false;
};

}  // namespace

TEST_CASE("every exporter gets every record") {
  Exported run;
  CHECK(run.run({"csv", "tensorboard"}) == Lines{"exported 2 records to csv, tensorboard"});
  CHECK_FALSE(run.lost_some);
  CHECK(run.warnings.empty());
  CHECK(run.read("export/metrics.csv") ==
        "event,split,attempt,step,loss,time\ntrain,,0,1,2.5,100.5\ntrain,,0,2,2.0,100.5\n");
}

TEST_CASE("an exporter that fails warns once, counts what it lost, and leaves the others alone") {
  Exported run;
  run.write("export/metrics.csv/file", "a folder in the place of the file");
  CHECK(run.run({"csv", "prometheus"}) == Lines{"exported 2 records to csv (2 lost), prometheus"});
  CHECK(run.lost_some);
  REQUIRE(run.warnings.size() == 1);
  CHECK(run.warnings[0].starts_with("export to csv: " + run.file("export/metrics.csv") +
                                    ": cannot be opened: Is a directory"));
  CHECK(run.warnings[0].ends_with("; training goes on without it"));
  CHECK(std::filesystem::exists(run.path / "export" / "scaletrain_run.prom"));
}

TEST_CASE("a picture that cannot be exported is a warning and counts as lost") {
  Exported run;
  run.write("media/broken.png/file", "a folder in the place of the picture");
  run.write("media/right.png", "a picture");
  const auto line = [](const std::string& file) {
    return R"({"name":"train/batch","file":")" + file +
           R"(","attempt":0,"step":1,"time":100.5,"columns":1,"captions":[]})" + "\n";
  };
  run.write("media/index.jsonl", line("broken.png") + line("right.png"));
  run.write("histograms.jsonl",
            "{\"attempt\":0,\"step\":2,\"time\":101.5,\"histograms\":{\"weights/w\":"
            "{\"min\":0,\"max\":1,\"sum\":1,\"sum_squares\":1,\"counts\":[2]}}}\n");
  CHECK(run.run({"tensorboard", "csv"}) ==
        Lines{"exported 2 records to tensorboard (1 picture lost), csv"});
  REQUIRE(run.warnings.size() == 1);
  CHECK(run.warnings[0].starts_with("export to tensorboard: "));
  const auto file = std::filesystem::directory_iterator(run.path / "export" / "tensorboard");
  const std::string events = run.read("export/tensorboard/" + file->path().filename().string());
  CHECK(events.find("a picture") != std::string::npos);
  CHECK(events.find("weights/w") != std::string::npos);
}

TEST_CASE("lost records, pictures and histograms are counted separately") {
  Exported run;
  run.write("export", "a file in the place of the folder");
  run.write("media/right.png", "a picture");
  run.write("media/index.jsonl",
            "{\"name\":\"train/batch\",\"file\":\"right.png\",\"attempt\":0,\"step\":1,"
            "\"time\":100.5,\"columns\":1,\"captions\":[]}\n");
  const std::string step =
      "{\"attempt\":0,\"step\":2,\"time\":101.5,\"histograms\":{\"weights/w\":"
      "{\"min\":0,\"max\":1,\"sum\":1,\"sum_squares\":1,\"counts\":[2]}}}\n";
  run.write("histograms.jsonl", step + step);
  CHECK(run.run({"csv", "tensorboard"}) ==
        Lines{"exported 2 records to csv (2 lost), "
              "tensorboard (2 lost, 1 picture lost, 2 histogram steps lost)"});
}

TEST_CASE("events of this job are sent, or those that were chosen") {
  Exported run;
  EventOptions events{.webhook = "",
                      .command = "echo $SCALETRAIN_EVENT >> '" + run.file("out") + "'",
                      .names = {},
                      .journal_from = 30};  // bytes of the first line: of an earlier job
  CHECK(run.run({}, events) == Lines{"sent 2 events to on_event"});
  CHECK(run.read("out") == "start\nend\n");
  events.names = {"end"};
  CHECK(run.run({}, events) == Lines{"sent 1 event to on_event"});
  CHECK(run.read("out") == "start\nend\nend\n");
  events.command = "exit 1";
  CHECK(run.run({}, events) == Lines{"sent 1 event to on_event (1 lost)"});
  CHECK(run.warnings ==
        Lines{"events to on_event: log.on_event: ended with exit code 1 for the event end; the "
              "event is lost, and training goes on"});
}

TEST_CASE("an unknown tracker is refused before anything is written") {
  Exported run;
  CHECK_THROWS_AS(run.run({"csv", "excel"}), core::UsageError);
  CHECK_FALSE(std::filesystem::exists(run.path / "export"));
}

}  // namespace scaletrain::track
