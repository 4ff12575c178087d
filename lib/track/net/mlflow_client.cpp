#include "lib/track/net/mlflow_client.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/text/markup.h"
#include "lib/core/text/url.h"
#include "lib/storage/sigv4.h"

namespace scaletrain::track {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kApi = "/api/2.0/mlflow/";
constexpr long kNotFound = 404;
constexpr std::size_t kLongestName = 250;

std::string error_code(const JsonAnswer& answer) {
  if (!answer.body.is_object()) return "";
  const auto code = answer.body.find("error_code");
  return code != answer.body.end() && code->is_string() ? code->get<std::string>() : "";
}

std::map<std::string, std::string> authorization(const storage::Variables& variables) {
  const std::string user = variables("MLFLOW_TRACKING_USERNAME");
  const std::string password = variables("MLFLOW_TRACKING_PASSWORD");
  const std::string token = variables("MLFLOW_TRACKING_TOKEN");
  if (!user.empty() && !password.empty()) {
    return {{"Authorization", "Basic " + core::base64(user + ":" + password)}};
  }
  if (!token.empty()) return {{"Authorization", "Bearer " + token}};
  return {};
}

}  // namespace

JsonServer mlflow_server(const storage::Variables& variables, SendHttp send) {
  std::string uri = variables("MLFLOW_TRACKING_URI");
  while (uri.ends_with('/')) uri.pop_back();
  if (uri.empty()) {
    throw core::UsageError("MLFLOW_TRACKING_URI", "is not set",
                           "set it to the address of the MLflow server");
  }
  const std::string_view scheme = core::url_scheme(uri);
  if (scheme != "http" && scheme != "https") {
    throw core::UsageError("MLFLOW_TRACKING_URI",
                           "\"" + core::shown_path(uri) + "\" is not the address of a server",
                           "use http://HOST:PORT or https://HOST");
  }
  if (!send) send = http_sender(variables("MLFLOW_TRACKING_SERVER_CERT_PATH"));
  return {std::move(uri), authorization(variables), std::move(send)};
}

std::string MlflowClient::experiment(const std::string& name) const {
  const std::string by_name = std::string(kApi) + "experiments/get-by-name?experiment_name=" +
                              storage::percent_encoded(name);
  JsonAnswer found = server_.get(by_name);
  if (found.status == kNotFound) {
    const JsonAnswer created = post("experiments/create", {{"name", name}});
    if (created.is_success()) return text_in(created, "/experiment_id");
    if (error_code(created) != "RESOURCE_ALREADY_EXISTS") server_.refuse(created);
    found = server_.get(by_name);  // another run has created it meanwhile
  }
  return text_in(accepted(std::move(found)), "/experiment/experiment_id");
}

std::optional<std::string> MlflowClient::find_run(const std::string& experiment,
                                                  const std::string& tag,
                                                  const std::string& value) const {
  const JsonAnswer answer =
      accepted(post("runs/search", {{"experiment_ids", Json::array({experiment})},
                                    {"filter", "tags.`" + tag + "` = '" + value + "'"},
                                    {"max_results", 1}}));
  if (!answer.body.is_object() || !answer.body.contains("runs")) return std::nullopt;
  return text_in(answer, "/runs/0/info/run_id");
}

std::string MlflowClient::create_run(const std::string& experiment, const std::string& name,
                                     std::int64_t start_ms, const Json& tags) const {
  Json list = Json::array();
  for (const auto& tag : tags.items()) list.push_back({{"key", tag.key()}, {"value", tag.value()}});
  return text_in(accepted(post("runs/create", {{"experiment_id", experiment},
                                               {"run_name", name},
                                               {"start_time", start_ms},
                                               {"tags", std::move(list)}})),
                 "/run/info/run_id");
}

void MlflowClient::log_metrics(const std::string& run, const Json& metrics) const {
  accepted(post("runs/log-batch", {{"run_id", run}, {"metrics", metrics}}));
}

void MlflowClient::log_params(const std::string& run, const Json& params) const {
  accepted(post("runs/log-batch", {{"run_id", run}, {"params", params}}));
}

bool MlflowClient::set_status(const std::string& run, const std::string& status,
                              std::int64_t end_ms) const {
  Json body{{"run_id", run}, {"status", status}};
  if (end_ms != 0) body["end_time"] = end_ms;
  JsonAnswer answer = post("runs/update", body);
  if (answer.status == kNotFound && error_code(answer) == "RESOURCE_DOES_NOT_EXIST") return false;
  accepted(std::move(answer));
  return true;
}

JsonAnswer MlflowClient::post(const std::string& call, const Json& body) const {
  return server_.post(kApi + call, body);
}

JsonAnswer MlflowClient::accepted(JsonAnswer answer) const {
  if (!answer.is_success()) server_.refuse(answer);
  return answer;
}

std::string MlflowClient::text_in(const JsonAnswer& answer, const char* pointer) const {
  const Json::json_pointer path(pointer);
  if (answer.body.contains(path) && answer.body.at(path).is_string()) {
    return answer.body.at(path).get<std::string>();
  }
  throw core::StorageError(place(),
                           std::string("the answer has no ") + pointer + ": is it MLflow?");
}

std::string mlflow_name(std::string name) {
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char letter) {
        return std::isalnum(letter) == 0 &&
               std::string_view("_-. /").find(static_cast<char>(letter)) == std::string_view::npos;
      },
      '_');
  name.resize(std::min(name.size(), kLongestName));
  return name;
}

}  // namespace scaletrain::track
