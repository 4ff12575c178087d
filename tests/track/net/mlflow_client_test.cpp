#include "lib/track/net/mlflow_client.h"

#include <doctest/doctest.h>

#include <map>
#include <vector>

#include "lib/core/error.h"

namespace scaletrain::track {
namespace {

using Json = nlohmann::ordered_json;

// Answers calls in the order of `answers`, and keeps what was asked.
struct Scripted {
  struct Answer {
    long status;
    std::string body;
  };

  MlflowClient client() {
    return MlflowClient(mlflow_server(
        [](const std::string& name) {
          return std::string(name == "MLFLOW_TRACKING_URI" ? "http://host:5000/" : "");
        },
        [this](const storage::HttpRequest& request) {
          asked.push_back(request.url.substr(std::string("http://host:5000").size()) + " " +
                          std::string(request.body));
          storage::HttpResponse response;
          response.status = answers.at(asked.size() - 1).status;
          response.body = answers.at(asked.size() - 1).body;
          return response;
        }));
  }

  std::vector<Answer> answers;
  std::vector<std::string> asked;
};

const std::string kBy = "/api/2.0/mlflow/experiments/get-by-name?experiment_name=my%20runs ";

storage::Variables variables_of(const std::map<std::string, std::string>& values) {
  return [values](const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? std::string() : found->second;
  };
}

// The header "Authorization" that is sent with these variables.
std::string authorization_of(std::map<std::string, std::string> values) {
  values["MLFLOW_TRACKING_URI"] = "http://host";
  std::string sent;
  const JsonServer server =
      mlflow_server(variables_of(values), [&sent](const storage::HttpRequest& request) {
        const auto found = request.headers.find("Authorization");
        sent = found == request.headers.end() ? "" : found->second;
        return storage::HttpResponse{};
      });
  server.get("/");
  return sent;
}

}  // namespace

TEST_CASE(
    "the server and the credentials come from the environment, as MLflow's clients read them") {
  CHECK(authorization_of({}).empty());
  CHECK(authorization_of({{"MLFLOW_TRACKING_TOKEN", "t"}}) == "Bearer t");
  CHECK(authorization_of({{"MLFLOW_TRACKING_TOKEN", "t"},
                          {"MLFLOW_TRACKING_USERNAME", "me"},
                          {"MLFLOW_TRACKING_PASSWORD", "word"}}) == "Basic bWU6d29yZA==");
  CHECK_THROWS_WITH_AS(
      mlflow_server(variables_of({})),
      "MLFLOW_TRACKING_URI: is not set\n  set it to the address of the MLflow server",
      core::UsageError);
  CHECK_THROWS_AS(mlflow_server(variables_of({{"MLFLOW_TRACKING_URI", "sqlite:///a.db"}})),
                  core::UsageError);
}

TEST_CASE("an experiment that is there is used") {
  Scripted server{.answers = {{200, R"({"experiment": {"experiment_id": "3"}})"}}, .asked = {}};
  CHECK(server.client().experiment("my runs") == "3");
  CHECK(server.asked == std::vector<std::string>{kBy});
}

TEST_CASE("an experiment that is absent is created, also if another run does so at the same time") {
  const std::string create = R"(/api/2.0/mlflow/experiments/create {"name":"my runs"})";
  Scripted server{.answers = {{404, "{}"}, {200, R"({"experiment_id": "4"})"}}, .asked = {}};
  CHECK(server.client().experiment("my runs") == "4");
  CHECK(server.asked == std::vector<std::string>{kBy, create});
  Scripted other{.answers = {{404, "{}"},
                             {400, R"({"error_code": "RESOURCE_ALREADY_EXISTS"})"},
                             {200, R"({"experiment": {"experiment_id": "5"}})"}},
                 .asked = {}};
  CHECK(other.client().experiment("my runs") == "5");
}

TEST_CASE("a run is searched by a tag and created with its name and tags") {
  Scripted server{.answers = {{200, "{}"},
                              {200, R"({"runs": [{"info": {"run_id": "r1"}}]})"},
                              {200, R"({"run": {"info": {"run_id": "r2"}}})"}},
                  .asked = {}};
  const MlflowClient client = server.client();
  CHECK_FALSE(client.find_run("3", "scaletrain.run", "ab"));
  CHECK(client.find_run("3", "scaletrain.run", "ab") == "r1");
  CHECK(client.create_run("3", "digits", 1500, {{"scaletrain.run", "ab"}}) == "r2");
  CHECK(server.asked[0] == R"(/api/2.0/mlflow/runs/search {"experiment_ids":["3"],)"
                           R"("filter":"tags.`scaletrain.run` = 'ab'","max_results":1})");
  CHECK(server.asked[2] ==
        R"(/api/2.0/mlflow/runs/create {"experiment_id":"3","run_name":"digits",)"
        R"("start_time":1500,"tags":[{"key":"scaletrain.run","value":"ab"}]})");
}

TEST_CASE("a run that the server does not have any more is known by its status") {
  Scripted server{.answers = {{200, "{}"},
                              {404, R"({"error_code": "RESOURCE_DOES_NOT_EXIST"})"},
                              {403, R"({"message": "no permission"})"}},
                  .asked = {}};
  const MlflowClient client = server.client();
  CHECK(client.set_status("r1", "FINISHED", 9));
  CHECK_FALSE(client.set_status("r1", "RUNNING", 0));
  CHECK_THROWS_WITH_AS(client.set_status("r1", "RUNNING", 0),
                       "http://host:5000: HTTP 403: no permission", core::StorageError);
  CHECK(server.asked[0] ==
        R"(/api/2.0/mlflow/runs/update {"run_id":"r1","status":"FINISHED","end_time":9})");
}

TEST_CASE("an answer that is not MLflow's is an error") {
  Scripted server{.answers = {{200, "<html>"}}, .asked = {}};
  CHECK_THROWS_WITH_AS(
      server.client().experiment("my runs"),
      "http://host:5000: the answer has no /experiment/experiment_id: is it MLflow?",
      core::StorageError);
}

TEST_CASE("characters that MLflow does not take in names are replaced") {
  CHECK(mlflow_name("Loss/train") == "Loss/train");
  CHECK(mlflow_name("top1/ema:0.9999/val") == "top1/ema_0.9999/val");
  CHECK(mlflow_name(std::string(300, 'a')).size() == 250);
}

}  // namespace scaletrain::track
