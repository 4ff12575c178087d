#include "lib/track/trackio.h"

#include <doctest/doctest.h>
#include <sqlite3.h>

#include <array>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/track/run_config.h"
#include "lib/track/sqlite.h"
#include "tests/temporary_folder.h"
#include "tests/track/records.h"

namespace scaletrain::track {
namespace {

using Rows = std::vector<std::string>;

int add_row(void* rows, int count, char** values, char** /*names*/) {
  std::string row;
  for (int i = 0; i < count; ++i) row += std::string(i == 0 ? "" : " ") + values[i];
  static_cast<Rows*>(rows)->push_back(row);
  return 0;
}

// The rows of a query, their columns separated by blanks.
Rows rows_of(const test::TemporaryFolder& folder, const std::string& query) {
  Rows rows;
  sqlite3* database = nullptr;
  REQUIRE(sqlite3_open(folder.file("db/scaletrain.db").c_str(), &database) == SQLITE_OK);
  REQUIRE(sqlite3_exec(database, query.c_str(), add_row, &rows, nullptr) == SQLITE_OK);
  sqlite3_close(database);
  return rows;
}

std::unique_ptr<Exporter> make(const test::TemporaryFolder& folder,
                               const std::string& name = "run") {
  return make_trackio_in({.run = folder.path, .name = name}, folder.path / "db");
}

}  // namespace

TEST_CASE("times are those of ISO 8601 with microseconds, in UTC") {
  CHECK(iso_time(100.25) == "1970-01-01T00:01:40.250000+00:00");
}

TEST_CASE("a run is its configuration and a row for each record") {
  const test::TemporaryFolder folder;
  folder.write("recipe.json", R"({"seed": 7})");
  const auto exporter = make(folder);
  exporter->write(std::array{train_record(1, 2.5), eval_record(1, 0.5)});
  exporter->finish();
  const std::string key = run_key("run", train_record(1, 2.5));
  CHECK(rows_of(folder, "SELECT run_id, run_name, config, created_at FROM configs") ==
        Rows{key + R"( run {"seed":7} 1970-01-01T00:01:40.500000+00:00)"});
  CHECK(rows_of(folder, "SELECT run_id, step, metrics, timestamp FROM metrics ORDER BY id") ==
        Rows{key + R"( 1 {"Loss/train":2.5} 1970-01-01T00:01:40.500000+00:00)",
             key + R"( 1 {"Accuracy/val":0.5} 1970-01-01T00:01:41.500000+00:00)"});
}

TEST_CASE("a value that is not finite is written as trackio writes it") {
  const test::TemporaryFolder folder;
  make(folder)->write(
      std::array{record_of(R"({"event":"train","attempt":0,"step":1,"loss":null,"time":100.5})")});
  CHECK(rows_of(folder, "SELECT metrics FROM metrics") == Rows{R"({"Loss/train":"NaN"})"});
}

TEST_CASE("a later attempt replaces the steps that it repeats, and a later export the whole run") {
  const test::TemporaryFolder folder;
  const std::string steps = "SELECT step, metrics FROM metrics ORDER BY step";
  const auto first = make(folder);
  first->write(std::array{train_record(1, 3), train_record(2, 2)});
  first->write(std::array{train_record(2, 5, 1), train_record(9, 9)});
  CHECK(rows_of(folder, steps) == Rows{R"(1 {"Loss/train":3.0})", R"(2 {"Loss/train":5.0})"});
  make(folder, "other")->write(std::array{train_record(7, 7)});
  make(folder)->write(std::array{train_record(1, 3)});
  CHECK(rows_of(folder, steps) == Rows{R"(1 {"Loss/train":3.0})", R"(7 {"Loss/train":7.0})"});
}

TEST_CASE("a locked file asks to try again, and then has the records once") {
  const test::TemporaryFolder folder;
  const auto exporter = make(folder);
  const std::array records{train_record(1, 3)};
  {
    Sqlite other(folder.path / "db" / "scaletrain.db");
    const SqlTransaction holder(other);
    CHECK_THROWS_AS(exporter->write(records), TryAgain);
  }
  exporter->write(records);
  CHECK(rows_of(folder, "SELECT step FROM metrics") == Rows{"1"});
}

TEST_CASE("a folder that is removed is an error") {
  const test::TemporaryFolder folder;
  const auto exporter = make(folder);
  std::filesystem::remove_all(folder.path / "db");
  CHECK_THROWS_AS(exporter->write(std::array{train_record(1, 3)}), core::StorageError);
}

}  // namespace scaletrain::track
