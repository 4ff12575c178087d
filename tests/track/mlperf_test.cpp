#include "lib/track/mlperf.h"

#include <doctest/doctest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "tests/temporary_folder.h"
#include "tests/track/records.h"

namespace scaletrain::track {
namespace {

using Json = nlohmann::ordered_json;

// "TYPE KEY VALUE METADATA" of each line, without file and line number.
std::vector<std::string> events_of(const test::TemporaryFolder& folder) {
  std::istringstream lines(folder.read("export/mlperf.log"));
  std::vector<std::string> events;
  for (std::string line; std::getline(lines, line);) {
    REQUIRE(line.starts_with(":::MLLOG {"));
    Json event = Json::parse(line.substr(9));
    event["metadata"].erase("file");
    event["metadata"].erase("lineno");
    events.push_back(event["event_type"].get<std::string>() + " " +
                     event["key"].get<std::string>() + " " + event["value"].dump() + " " +
                     event["metadata"].dump());
  }
  return events;
}

Record train_in_epoch(int step, int epoch) {
  return record_of(Json{
      {"event", "train"},
      {"attempt", 0},
      {"step", step},
      {"epoch", epoch},
      {"samples", 16 * step},
      {"loss", 2.5},
      {"time", 100.5}}.dump());
}

}  // namespace

TEST_CASE("a line has the fields of MLPerf's logging") {
  CHECK(mlperf_line({100.5, "POINT_IN_TIME", "seed"}, 7, {{"step", 1}}) ==
        R"(:::MLLOG {"namespace":"","time_ms":100500,"event_type":"POINT_IN_TIME",)"
        R"("key":"seed","value":7,"metadata":{"file":"scaletrain","lineno":0,"step":1}})"
        "\n");
}

TEST_CASE("a run has its settings, its epochs, losses and accuracies, and how it ended") {
  const test::TemporaryFolder folder;
  folder.write("recipe.json", R"({"seed": 7, "optimizer": {"name": "sgd", "lr": 0.1}})");
  folder.write("start.json", R"({"batch": {"global": 16}})");
  folder.write("finished.json", "{}");
  const auto exporter = make_mlperf({.run = folder.path, .name = "run"});
  exporter->write(std::array{train_in_epoch(1, 0), eval_record(1, 0.5)});
  exporter->write(std::array{train_in_epoch(2, 1)});
  exporter->finish();
  CHECK(events_of(folder) ==
        std::vector<std::string>{
            "POINT_IN_TIME seed 7 {}", "POINT_IN_TIME global_batch_size 16 {}",
            "POINT_IN_TIME opt_name \"sgd\" {}", "POINT_IN_TIME opt_base_learning_rate 0.1 {}",
            "INTERVAL_START run_start null {}", "INTERVAL_START epoch_start null {\"epoch_num\":0}",
            R"(POINT_IN_TIME train_loss 2.5 {"step":1,"epoch_num":0,"samples_count":16})",
            R"(POINT_IN_TIME eval_accuracy 0.5 {"step":1,"split":"val"})",
            "INTERVAL_END epoch_stop null {\"epoch_num\":0}",
            "INTERVAL_START epoch_start null {\"epoch_num\":1}",
            R"(POINT_IN_TIME train_loss 2.5 {"step":2,"epoch_num":1,"samples_count":32})",
            "INTERVAL_END epoch_stop null {\"epoch_num\":1}",
            R"(INTERVAL_END run_stop null {"status":"success"})"});
}

TEST_CASE("a run that did not finish was aborted, and one without a record has no lines") {
  const test::TemporaryFolder folder;
  const auto empty = make_mlperf({.run = folder.path, .name = "run"});
  empty->finish();
  CHECK(events_of(folder).empty());
  const auto exporter = make_mlperf({.run = folder.path, .name = "run"});
  exporter->write(std::array{train_record(1, 2)});
  exporter->finish();
  CHECK(events_of(folder).back() == R"(INTERVAL_END run_stop null {"status":"aborted"})");
}

}  // namespace scaletrain::track
