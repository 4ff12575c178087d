#include "lib/track/exports.h"

#include <doctest/doctest.h>

#include <array>
#include <filesystem>

#include "tests/temporary_folder.h"
#include "tests/track/records.h"

namespace scaletrain::track {
namespace {

struct Exported : test::TemporaryFolder {
  Exports make(const std::vector<std::string>& names) {
    return Exports(names, {.run = path, .name = "run"},
                   [this](const std::string& line) { warnings.push_back(line); });
  }

  std::vector<std::string> warnings;
};

}  // namespace

TEST_CASE("every exporter gets every record") {
  Exported run;
  Exports exports = run.make({"csv", "tensorboard"});
  exports.write(std::array{train_record(1, 2.5), train_record(2, 2)});
  exports.finish();
  CHECK(exports.summary() == "exported 2 records to csv, tensorboard");
  CHECK_FALSE(exports.lost_some());
  CHECK(run.warnings.empty());
  CHECK(exports.sockets() == std::vector<int>{-1, -1});
}

TEST_CASE("an exporter that fails warns once, counts what it lost, and leaves the others alone") {
  Exported run;
  run.write("export/metrics.csv/file", "a folder in the place of the file");
  Exports exports = run.make({"csv", "prometheus"});
  exports.write(std::array{train_record(1, 2.5)});
  exports.write(std::array{train_record(2, 2)});
  CHECK(exports.summary() == "exported 2 records to csv (2 lost), prometheus");
  CHECK(exports.lost_some());
  REQUIRE(run.warnings.size() == 1);
  CHECK(run.warnings[0].starts_with("export to csv: " + run.file("export/metrics.csv") +
                                    ": cannot be opened: Is a directory"));
  CHECK(run.warnings[0].ends_with("; training goes on without it"));
  CHECK(std::filesystem::exists(run.path / "export" / "scaletrain_run.prom"));
  std::filesystem::remove_all(run.path / "export" / "metrics.csv");
  exports.write(std::array{train_record(3, 1.5)});
  CHECK(exports.summary() == "exported 3 records to csv (2 lost), prometheus");
}

TEST_CASE("a picture that cannot be exported is a warning and counts as lost") {
  Exported run;
  Exports exports = run.make({"tensorboard", "csv"});
  exports.write_picture({.name = "train/batch", .file = "absent.png", .captions = {}});
  exports.write_histograms({.all = {}});
  CHECK(exports.summary() == "exported 0 records to tensorboard (1 lost), csv");
  REQUIRE(run.warnings.size() == 1);
  CHECK(run.warnings[0].starts_with("export to tensorboard: "));
}

TEST_CASE("a file that is read from its beginning again is exported anew") {
  Exported run;
  Exports exports = run.make({"csv"});
  exports.write(std::array{train_record(1, 2.5)});
  exports.begin_again();
  exports.write(std::array{train_record(1, 3.5)});
  CHECK(exports.summary() == "exported 1 record to csv");
  CHECK(run.read("export/metrics.csv") ==
        "event,split,attempt,step,loss,time\ntrain,,0,1,3.5,100.5\n");
}

}  // namespace scaletrain::track
