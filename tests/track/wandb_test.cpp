#include "lib/track/wandb.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/track/run_config.h"
#include "tests/temporary_folder.h"
#include "tests/track/records.h"

namespace scaletrain::track {
namespace {

std::vector<std::string> offline_runs(const std::filesystem::path& run) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(run / "export" / "wandb")) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string contents(const test::TemporaryFolder& folder, const std::string& name) {
  const std::string id = name.substr(name.rfind('-') + 1);
  return folder.read("export/wandb/" + name + "/run-" + id + ".wandb");
}

std::string file_of(const std::vector<std::string>& records) {
  std::string file = wandb_file_header();
  for (const std::string& record : records) {
    file += wandb_frame(record, static_cast<std::int64_t>(file.size()));
  }
  return file;
}

// Row of records.h's train_record.
JsonByKey row_of(int step, const std::string& loss) {
  return {{"Loss/train", loss},
          {"_runtime", "0"},
          {"_step", std::to_string(step)},
          {"_timestamp", "100.5"}};
}

}  // namespace

TEST_CASE("the configuration is the recipe without what is secret in URLs") {
  const auto recipe = nlohmann::ordered_json::parse(
      R"({"steps": 8, "data": {"train": {"shards": ["https://me:word@host/a.tar?sig=1"]}}})");
  CHECK(wandb_config(recipe) ==
        JsonByKey{{"steps", "8"},
                  {"data", R"({"train":{"shards":["https://***@host/a.tar?***"]}})"}});
}

TEST_CASE("each attempt is an offline run of its own with the same run ID") {
  const test::TemporaryFolder folder;
  folder.write("recipe.json", R"({"steps": 8})");
  folder.write("finished.json", "{}");
  folder.write("export/wandb/offline-run-20000101_000000-a/run-a.wandb", "of an earlier exporter");
  const auto exporter = make_wandb({.run = folder.path, .name = "run"});
  exporter->write(std::array{train_record(1, 2.5), eval_record(1, 0.5), train_record(2, 2)});
  exporter->write(std::array{train_record(2, 1, 1), train_record(9, 9)});
  exporter->finish();
  const std::string id = run_key("run", train_record(1, 2.5));
  const std::vector<std::string> names = offline_runs(folder.path);
  REQUIRE(names == std::vector<std::string>{"offline-run-19700101_000140-" + id,
                                            "offline-run-19700101_000141-" + id});
  JsonByKey first = row_of(1, "2.5");
  first["Accuracy/val"] = "0.5";
  first["_runtime"] = "1";
  first["_timestamp"] = "101.5";
  JsonByKey summary = row_of(2, "2.0");
  summary["Accuracy/val"] = "0.5";
  WandbRun run{
      .id = id, .name = "run", .config = {{"steps", "8"}}, .start_time = 100.5, .starting_step = 1};
  CHECK(
      contents(folder, names[0]) ==
      file_of({wandb_header_record(1), wandb_run_record(2, run), wandb_history_record(3, 1, first),
               wandb_history_record(4, 2, row_of(2, "2.0")), wandb_summary_record(5, summary),
               wandb_exit_record(6, 0, 0), wandb_footer_record(7)}));
  run.starting_step = 2;
  run.is_resumed = true;
  summary["Loss/train"] = "1.0";
  CHECK(contents(folder, names[1]) ==
        file_of({wandb_header_record(1), wandb_run_record(2, run),
                 wandb_history_record(3, 2, row_of(2, "1.0")), wandb_summary_record(4, summary),
                 wandb_exit_record(5, 0, 0), wandb_footer_record(6)}));
}

TEST_CASE("a run that did not finish has exit code 1, and NaN stays NaN") {
  const test::TemporaryFolder folder;
  const auto exporter = make_wandb({.run = folder.path, .name = "run"});
  const Record record =
      record_of(R"({"event":"train","attempt":0,"step":1,"loss":null,"time":100.5})");
  exporter->write(std::array{record});
  exporter->finish();
  const std::string file = contents(folder, offline_runs(folder.path).at(0));
  const WandbRun run{
      .id = run_key("run", record), .name = "run", .start_time = 100.5, .starting_step = 1};
  CHECK(file == file_of({wandb_header_record(1), wandb_run_record(2, run),
                         wandb_history_record(3, 1, row_of(1, "NaN")),
                         wandb_summary_record(4, row_of(1, "NaN")), wandb_exit_record(5, 1, 0),
                         wandb_footer_record(6)}));
}

TEST_CASE("the evaluation of an earlier checkpoint joins the newest row") {
  const test::TemporaryFolder folder;
  const auto exporter = make_wandb({.run = folder.path, .name = "run"});
  exporter->write(std::array{train_record(1, 3), train_record(2, 2), eval_record(1, 0.5)});
  exporter->finish();
  JsonByKey newest = row_of(2, "2.0");
  newest["Accuracy/val"] = "0.5";
  newest["_runtime"] = "1";
  newest["_timestamp"] = "101.5";
  const std::string file = contents(folder, offline_runs(folder.path).at(0));
  CHECK(file.find(wandb_history_record(4, 2, newest)) != std::string::npos);
}

TEST_CASE("a run without a record has no offline run") {
  const test::TemporaryFolder folder;
  make_wandb({.run = folder.path, .name = "run"})->finish();
  CHECK(offline_runs(folder.path).empty());
}

TEST_CASE("a folder that cannot be made is an error") {
  const test::TemporaryFolder folder;
  folder.write("export", "a file in the place of the folder");
  CHECK_THROWS_AS(make_wandb({.run = folder.path, .name = "run"}), core::StorageError);
}

}  // namespace scaletrain::track
