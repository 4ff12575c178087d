#include "launcher/commands/watch/metrics_follower.h"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/temporary_folder.h"

namespace scaletrain::launcher {
namespace {

const std::string kFirst = R"({"event":"train","attempt":0,"step":1,"loss":2.5,"lr":0.1,)"
                           R"("samples_per_s":50}
{"event":"ledger","attempt":0,"step":1,"rank":0,"seconds":{"data_wait":0.25}}
{"event":"eval","attempt":0,"split":"val","step":2,"epoch":0,"top1":0.5,"loss":2.0,"count":20}
{"event":"train","attempt":0,"step":3,"loss":null,"lr":0.1,"samples_per_s":50}
)";

struct Metrics : test::TemporaryFolder {
  MetricsFollower follower{path / "metrics.jsonl"};
};

}  // namespace

TEST_CASE("a run without metrics has no curves") {
  Metrics run;
  run.follower.read();
  CHECK(run.follower.curves().attempt == -1);
  CHECK(run.follower.curves().loss.empty());
}

TEST_CASE("curves have the values of the records, and NaN for null") {
  Metrics run;
  run.write("metrics.jsonl", kFirst);
  run.follower.read();
  const RunCurves& curves = run.follower.curves();
  REQUIRE(curves.loss.size() == 2);
  CHECK(curves.loss[0].x == 1);
  CHECK(curves.loss[0].y == 2.5);
  CHECK(std::isnan(curves.loss[1].y));
  CHECK(curves.measure == "top1");
  REQUIRE(curves.validation.size() == 1);
  CHECK(curves.validation[0].y == 0.5);
  REQUIRE(curves.rows.size() == 1);
  CHECK(curves.rows[0].first == "data_wait");
  CHECK(curves.rows[0].second == 0.25);
}

TEST_CASE("the time of a run is that of its attempts, without the pauses between them") {
  Metrics run;
  run.write("metrics.jsonl",
            R"({"event":"train","attempt":0,"step":1,"time":1000,"memory_bytes":5}
{"event":"train","attempt":0,"step":2,"time":1010,"memory_bytes":7}
{"event":"train","attempt":1,"step":2,"time":2000}
{"event":"ledger","attempt":1,"step":2,"time":2004.5}
)");
  run.follower.read();
  CHECK(run.follower.curves().seconds == 14.5);
  CHECK(run.follower.curves().peak_bytes == 7.0);
}

TEST_CASE("a language model's throughput is in tokens, and rows of the ledger are summed") {
  Metrics run;
  run.write("metrics.jsonl",
            R"({"event":"train","attempt":0,"step":1,"samples_per_s":2,"tokens_per_s":2048}
{"event":"ledger","attempt":0,"step":1,"seconds":{"forward":1,"backward":2}}
{"event":"ledger","attempt":0,"step":2,"seconds":{"forward":1,"other":0.5}}
)");
  run.follower.read();
  const RunCurves& curves = run.follower.curves();
  CHECK(curves.counts_tokens);
  REQUIRE(curves.throughput.size() == 1);
  CHECK(curves.throughput[0].y == 2048);
  CHECK(curves.rows == std::vector<std::pair<std::string, double>>{
                           {"forward", 2}, {"backward", 2}, {"other", 0.5}});
}

TEST_CASE("appended lines are added once, and a line that is not whole waits for its end") {
  Metrics run;
  run.write("metrics.jsonl", kFirst + R"({"event":"train","attempt":0,"step":4,)");
  run.follower.read();
  CHECK(run.follower.curves().loss.size() == 2);
  run.write("metrics.jsonl",
            kFirst + R"({"event":"train","attempt":0,"step":4,"loss":1.0})" + "\n");
  run.follower.read();
  run.follower.read();
  REQUIRE(run.follower.curves().loss.size() == 3);
  CHECK(run.follower.curves().loss[2].y == 1.0);
}

TEST_CASE("a later attempt replaces the steps that it repeats") {
  Metrics run;
  run.write("metrics.jsonl",
            kFirst + "torn\n" + R"({"event":"train","attempt":1,"step":3,"loss":1.5})" + "\n");
  run.follower.read();
  const RunCurves& curves = run.follower.curves();
  CHECK(curves.attempt == 1);
  REQUIRE(curves.loss.size() == 2);
  CHECK(curves.loss[1].x == 3);
  CHECK(curves.loss[1].y == 1.5);
}

}  // namespace scaletrain::launcher
