#include "lib/track/csv_file.h"

#include <doctest/doctest.h>

#include <array>

#include "tests/temporary_folder.h"
#include "tests/track/records.h"

namespace scaletrain::track {

TEST_CASE("a row has the digits of the record, and an empty field for what it does not have") {
  const Columns columns{"step", "top5", "loss"};
  CHECK(csv_header(columns) == "event,split,step,top5,loss\n");
  CHECK(csv_row(train_record(3, 0.25), columns) == "train,,3,,0.25\n");
}

TEST_CASE("a name that a spreadsheet would compute is a text") {
  CHECK(csv_header({"loss", "=1+1", "a,b"}) == "event,split,loss,'=1+1,\"a,b\"\n");
  CHECK(csv_row({.event = "eval", .split = "@night"}, {"loss"}) == "eval,'@night,\n");
}

TEST_CASE("rows get empty fields for new columns") {
  CHECK(widen_rows("a,b\n1,2\n3,4\n", 2) == "1,2,,\n3,4,,\n");
  CHECK(widen_rows("", 1).empty());
  CHECK(widen_rows("a,b\n", 1).empty());
}

TEST_CASE("the file is rewritten with a new header when a record has new fields") {
  const test::TemporaryFolder folder;
  const auto csv = make_csv({.run = folder.path, .name = "run"});
  csv->write(std::array{train_record(1, 2.5)});
  csv->write(std::array{train_record(2, 2)});
  CHECK(folder.read("export/metrics.csv") ==
        "event,split,attempt,step,loss,time\n"
        "train,,0,1,2.5,100.5\n"
        "train,,0,2,2.0,100.5\n");
  csv->write(std::array{eval_record(2, 0.5)});
  csv->write(std::array{train_record(3, 1.5)});
  CHECK(folder.read("export/metrics.csv") ==
        "event,split,attempt,step,loss,time,top1\n"
        "train,,0,1,2.5,100.5,\n"
        "train,,0,2,2.0,100.5,\n"
        "eval,val,0,2,,101.5,0.5\n"
        "train,,0,3,1.5,100.5,\n");
}

TEST_CASE("an exporter that starts again begins the file again") {
  const test::TemporaryFolder folder;
  make_csv({.run = folder.path, .name = "run"})->write(std::array{train_record(1, 2.5)});
  make_csv({.run = folder.path, .name = "run"})->write(std::array{train_record(1, 3.5)});
  CHECK(folder.read("export/metrics.csv") ==
        "event,split,attempt,step,loss,time\ntrain,,0,1,3.5,100.5\n");
}

}  // namespace scaletrain::track
