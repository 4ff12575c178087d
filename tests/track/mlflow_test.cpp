#include "lib/track/mlflow.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "lib/core/error.h"
#include "tests/temporary_folder.h"
#include "tests/track/records.h"

namespace scaletrain::track {
namespace {

using Json = nlohmann::ordered_json;

// A server with memory: one experiment, its runs, and calls that fail.
struct FakeMlflow {
  struct Run {
    std::string key, status = "RUNNING";
    std::map<std::string, std::string> params;
    std::vector<Json> metrics;
  };

  storage::HttpResponse answer(const storage::HttpRequest& request) {
    const std::string call = request.url.substr(request.url.rfind("/mlflow/") + 8);
    calls.push_back(call);
    if (is_away) throw storage::TransferError("no connection", false);
    const Json body = request.body.empty() ? Json() : Json::parse(request.body);
    storage::HttpResponse response;
    response.status = 200;
    response.body = handled(call, body).dump();
    if (lost_answer-- == 0) throw storage::TransferError("cut", false);
    if (response.body == "null") response.status = 404;
    if (response.status == 404) response.body = R"({"error_code": "RESOURCE_DOES_NOT_EXIST"})";
    return response;
  }

  Json handled(const std::string& call, const Json& body) {
    if (call.starts_with("experiments/get-by-name")) {
      return {{"experiment", {{"experiment_id", "1"}}}};
    }
    if (call == "runs/create") {
      runs["r" + std::to_string(runs.size())].key = body.at("tags").at(0).at("value");
      return {{"run", {{"info", {{"run_id", std::prev(runs.end())->first}}}}}};
    }
    if (call == "runs/search") return found(body.at("filter"));
    const std::string id = body.at("run_id");
    if (!runs.contains(id)) return nullptr;
    if (call == "runs/update") runs[id].status = body.at("status");
    for (const Json& param : body.value("params", Json::array())) {
      runs[id].params[param.at("key")] = param.at("value");
    }
    for (const Json& metric : body.value("metrics", Json::array())) {
      runs[id].metrics.push_back(metric);
    }
    return Json::object();
  }

  Json found(const std::string& filter) const {
    for (const auto& [id, run] : runs) {
      if (filter.find(run.key) != std::string::npos) {
        return {{"runs", Json::array({{{"info", {{"run_id", id}}}}})}};
      }
    }
    return Json::object();
  }

  // Values of a metric by the order of their arrival.
  std::vector<double> values(const std::string& id, const std::string& key) {
    std::vector<double> values;
    for (const Json& metric : runs.at(id).metrics) {
      if (metric.at("key") == key) values.push_back(metric.at("value"));
    }
    return values;
  }

  std::map<std::string, Run> runs;
  std::vector<std::string> calls;
  bool is_away = false;
  int lost_answer = -1;  // number of the call from now on, from 0
};

struct MlflowExport : test::TemporaryFolder {
  MlflowExport() { write("recipe.json", R"({"name": "run", "optimizer": {"lr": 0.1}})"); }

  std::unique_ptr<Exporter> make() {
    return make_mlflow_with(
        {.run = path, .name = "run"},
        [](const std::string& name) {
          return std::string(name == "MLFLOW_TRACKING_URI" ? "http://host" : "");
        },
        [this](const storage::HttpRequest& request) { return server.answer(request); });
  }

  FakeMlflow server;
};

using Values = std::vector<double>;

}  // namespace

TEST_CASE(
    "a run has the recipe as parameters, metrics under TensorBoard's tags and a final status") {
  MlflowExport run;
  const auto exporter = run.make();
  exporter->write(std::array{train_record(1, 2.5), eval_record(1, 0.5)});
  exporter->write(std::array{train_record(2, 2)});
  CHECK(run.server.runs.at("r0").status == "RUNNING");
  run.write("finished.json", "{}");
  exporter->finish();
  const auto& sent = run.server.runs.at("r0");
  CHECK(sent.params ==
        std::map<std::string, std::string>{{"name", "run"}, {"optimizer.lr", "0.1"}});
  REQUIRE(sent.metrics.size() == 3);
  CHECK(sent.metrics[0].dump() ==
        R"({"key":"Loss/train","value":2.5,"timestamp":100500,"step":1})");
  CHECK(sent.metrics[1].dump() ==
        R"({"key":"Accuracy/val","value":0.5,"timestamp":101500,"step":1})");
  CHECK(run.server.values("r0", "Loss/train") == Values{2.5, 2});
  CHECK(sent.status == "FINISHED");
}

TEST_CASE("a value that is not finite is a text") {
  MlflowExport run;
  run.make()->write(
      std::array{record_of(R"({"event":"train","attempt":0,"step":1,"loss":null,"time":100.5})")});
  CHECK(run.server.runs.at("r0").metrics.at(0).at("value") == "NaN");
}

TEST_CASE("a server that was away gets everything once, in order") {
  MlflowExport run;
  const auto exporter = run.make();
  const std::array first{train_record(1, 3), train_record(2, 2)};
  run.server.is_away = true;
  CHECK_THROWS_AS(exporter->write(first), TryAgain);
  run.server.is_away = false;
  exporter->write(first);
  run.server.is_away = true;
  const std::array second{train_record(3, 1)};
  CHECK_THROWS_AS(exporter->write(second), TryAgain);
  run.server.is_away = false;
  exporter->write(second);
  CHECK(run.server.runs.size() == 1);
  CHECK(run.server.values("r0", "Loss/train") == Values{3, 2, 1});
}

TEST_CASE("a call whose answer is lost leaves one run with one value a step") {
  const std::array records{train_record(1, 3)};
  // experiments/get-by-name, runs/search, runs/create, log-batch of parameters and of metrics
  for (int lost = 0; lost < 5; ++lost) {
    CAPTURE(lost);
    MlflowExport run;
    const auto exporter = run.make();
    run.server.lost_answer = lost;
    CHECK_THROWS_AS(exporter->write(records), TryAgain);
    exporter->write(records);
    REQUIRE(run.server.runs.size() == 1);
    // MLflow keeps a point once that it gets twice.
    const Values values = run.server.values("r0", "Loss/train");
    CHECK(std::all_of(values.begin(), values.end(), [](double value) { return value == 3; }));
    CHECK(run.server.runs.at("r0").params.size() == 2);
  }
}

TEST_CASE("a later export goes on behind the records that the server has") {
  MlflowExport run;
  const auto first = run.make();
  first->write(std::array{train_record(1, 3), train_record(2, 2)});
  first->finish();
  CHECK(run.server.runs.at("r0").status == "KILLED");
  const auto second = run.make();
  second->write(std::array{train_record(1, 3), train_record(2, 2), train_record(3, 1)});
  CHECK(run.server.runs.at("r0").status == "RUNNING");
  CHECK(run.server.values("r0", "Loss/train") == Values{3, 2, 1});
  run.write("failure.json", "{}");
  second->finish();
  CHECK(run.server.runs.at("r0").status == "FAILED");
}

TEST_CASE("a server that has lost the run gets all records again") {
  MlflowExport run;
  const auto first = run.make();
  first->write(std::array{train_record(1, 3)});
  first->finish();
  run.server.runs.clear();
  run.make()->write(std::array{train_record(1, 3), train_record(2, 2)});
  CHECK(run.server.values("r0", "Loss/train") == Values{3, 2});
}

TEST_CASE("a record with more metrics than a call takes is sent in several calls") {
  MlflowExport run;
  Json line{{"event", "train"}, {"attempt", 0}, {"step", 1}, {"time", 100.5}};
  for (int i = 0; i < 1500; ++i) line["model"]["m" + std::to_string(i)] = i;
  run.make()->write(std::array{record_of(line.dump()), train_record(2, 2)});
  CHECK(run.server.runs.at("r0").metrics.size() == 1501);
  CHECK(std::count(run.server.calls.begin(), run.server.calls.end(), "runs/log-batch") ==
        3);  // parameters, 1,000, 501
}

}  // namespace scaletrain::track
