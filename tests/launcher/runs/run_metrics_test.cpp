#include "launcher/runs/run_metrics.h"

#include <doctest/doctest.h>

#include "tests/temporary_folder.h"

namespace scaletrain::launcher {
namespace {

const char* const kTwoAttempts =
    R"({"event":"train","attempt":0,"step":1,"loss":4.0,"time":10}
{"event":"train","attempt":0,"step":2,"loss":3.0,"time":11}
{"event":"train","attempt":1,"step":2,"loss":2.0,"time":50}
{"event":"eval","split":"val","attempt":1,"step":2,"top1":0.5,"time":51}
{"event":"checkpoint","attempt":1,"step":2,"time":52}
{"event":"train","attempt":1,"st)";

TEST_CASE("the record of the later attempt counts for a step that two attempts logged") {
  const test::TemporaryFolder run;
  run.write("metrics.jsonl", kTwoAttempts);
  const RunMetrics metrics = read_metrics(run.path);
  CHECK(train_curve(metrics, "loss") == RunCurve{{1, 4.0}, {2, 2.0}});
  CHECK(eval_curve(metrics, "val", "top1") == RunCurve{{2, 0.5}});
  CHECK(eval_curve(metrics, "test", "top1").empty());
  CHECK(metrics.others.size() == 1);
  CHECK(trained_seconds(metrics) == 3);  // 11 - 10 + 52 - 50
}

TEST_CASE("the last training records are those of the newest attempt, without an incomplete line") {
  const test::TemporaryFolder run;
  run.write("metrics.jsonl", kTwoAttempts);
  const std::vector<RunJson> records = last_train_records(run.path);
  REQUIRE(records.size() == 1);
  CHECK(number_of(records[0], "loss") == 2.0);
}

TEST_CASE("the last training records of a long file are found from its end") {
  const test::TemporaryFolder run;
  std::string text;
  for (int step = 0; step < 20'000; ++step) {
    text += R"({"event":"train","attempt":0,"step":)" + std::to_string(step) + R"(,"loss":1.5})";
    text += "\n";
  }
  run.write("metrics.jsonl", text);
  const std::vector<RunJson> records = last_train_records(run.path);
  REQUIRE_FALSE(records.empty());
  CHECK(records.size() < 20'000);
  CHECK(number_of(records.back(), "step") == 19'999);
  const double first = number_of(records.front(), "step").value_or(-1);
  CHECK(first == 20'000 - static_cast<double>(records.size()));  // no record is missing between
}

TEST_CASE("a run without metrics has none") {
  CHECK(read_metrics("/nowhere").trained.empty());
  CHECK(last_train_records("/nowhere").empty());
}

}  // namespace
}  // namespace scaletrain::launcher
