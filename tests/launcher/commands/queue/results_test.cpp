#include "launcher/commands/queue/results.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "tests/temporary_folder.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

// A run's folder with these metrics, whose best is chosen by `best`.
struct Run : test::TemporaryFolder {
  explicit Run(const std::string& metrics,
               const std::string& best = R"({"metric": "top1", "mode": "max"})") {
    write("metrics.jsonl", metrics);
    write("recipe.json", R"({"checkpoint": {"best": )" + best + "}}");
  }
};

const char* const kMetrics =
    R"({"event":"train","attempt":0,"step":1,"loss":2.5,"time":100}
{"event":"eval","split":"val","attempt":0,"step":2,"loss":2.0,"top1":0.5,"time":104}
{"event":"train","attempt":0,"step":3,"loss":9.0,"time":105}
{"event":"train","attem
{"event":"train","attempt":1,"step":3,"loss":1.5,"time":200}
{"event":"eval","split":"val","attempt":1,"step":4,"loss":1.0,"top1":0.75,"time":203}
{"event":"eval","split":"val","attempt":1,"step":6,"loss":1.25,"top1":0.625,"time":206}
{"event":"eval","split":"test","attempt":1,"step":6,"loss":0.1,"top1":1.0,"time":207}
)";

TEST_CASE("the best and the last validation, the last loss, and the time of all attempts") {
  const Run run(kMetrics);
  const RunResult result = read_result(run.path);
  CHECK(result.step == 3);
  CHECK(result.train_loss == 1.5);  // of the later attempt
  CHECK(result.metric == "top1");
  CHECK(result.best == 0.75);
  CHECK(result.last == 0.625);
  CHECK(result.last_val_loss == 1.25);
  CHECK(result.seconds == 12);  // 105 - 100 + 207 - 200
}

TEST_CASE("a run without metrics has no result") {
  const RunResult result = read_result("/nowhere");
  CHECK(result.step == 0);
  CHECK_FALSE(result.best.has_value());
}

TEST_CASE("the best by a loss is the lowest, and runs of two metrics have columns of their own") {
  const Run images(kMetrics), text(kMetrics, R"({"metric": "loss", "mode": "min"})");
  CHECK(read_result(text.path).best == 1.0);
  CHECK(read_result(text.path).last == 1.25);
  std::vector<QueuedJob> jobs(2);
  jobs[0] = {.number = 1, .name = "a", .output = images.path};
  jobs[1] = {.number = 2, .name = "b", .output = text.path};
  CHECK(results_table(jobs, TableFormat::kCsv, false)
            .starts_with("job,name,state,step,best_val_top1,last_val_top1,best_val_loss,"
                         "last_val_loss,val_loss,train_loss,seconds\r\n"));
}

TEST_CASE("the table has the varied keys as columns, the best first where that is asked for") {
  const Run run(kMetrics);
  std::vector<QueuedJob> jobs(2);
  jobs[0] = {.number = 1, .name = "a", .values = {{"lr", "1,5"}}, .output = "/nowhere"};
  jobs[0].state = QueuedJob::State::kFailed;
  jobs[0].exit_code = 65;
  jobs[1] = {.number = 2, .name = "b", .values = {{"lr", "2"}}, .output = run.path};
  jobs[1].state = QueuedJob::State::kDone;
  CHECK(
      results_table(jobs, TableFormat::kText, true) ==
      "job  name  state       lr   step  best_val_top1  last_val_top1  val_loss  train_loss  "
      "seconds\n"
      "2    b     done        2    3     0.7500         0.6250         1.2500    1.5000      12.0\n"
      "1    a     failed(65)  1,5  0     -              -              -         -           "
      "0.0\n");
  CHECK(results_table(jobs, TableFormat::kCsv, false) ==
        "job,name,state,lr,step,best_val_top1,last_val_top1,val_loss,train_loss,seconds\r\n"
        "1,a,failed(65),\"1,5\",0,,,,,0.0\r\n"
        "2,b,done,2,3,0.7500,0.6250,1.2500,1.5000,12.0\r\n");
  const std::string json = results_table(jobs, TableFormat::kJson, false);
  CHECK(json.find("\"best_val_top1\": 0.75") != std::string::npos);
  CHECK(json.find("\"best_val_top1\": null") != std::string::npos);
}

TEST_CASE("formats are known by their names") {
  CHECK(parse_table_format("csv") == TableFormat::kCsv);
  CHECK_THROWS_AS(parse_table_format("xml"), core::UsageError);
}

}  // namespace
}  // namespace scaletrain::launcher
