// MLflow's REST API, version 2.0: experiments, runs and their metrics.
//
// Errors are those of JsonServer; an answer that refuses a request is a core::StorageError with
// MLflow's message.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lib/storage/aws_settings.h"
#include "lib/track/net/json_server.h"

namespace scaletrain::track {

// Reads the variables that MLflow's own clients read: MLFLOW_TRACKING_URI; MLFLOW_TRACKING_USERNAME
// with MLFLOW_TRACKING_PASSWORD, otherwise MLFLOW_TRACKING_TOKEN; MLFLOW_TRACKING_SERVER_CERT_PATH.
// Throws core::UsageError if the address is missing or is not that of an HTTP server. `send` is for
// tests.
JsonServer mlflow_server(const storage::Variables& variables, SendHttp send = {});

class MlflowClient {
 public:
  using Json = nlohmann::ordered_json;

  explicit MlflowClient(JsonServer server) : server_(std::move(server)) {}

  // Returns the ID of the experiment, which is created unless it is there.
  std::string experiment(const std::string& name) const;

  // Returns the ID of the newest run whose tag `tag` has this value, which is hexadecimal digits.
  std::optional<std::string> find_run(const std::string& experiment, const std::string& tag,
                                      const std::string& value) const;

  // Returns the ID of the new run. `tags` is an object of texts, `start_ms` Unix milliseconds.
  std::string create_run(const std::string& experiment, const std::string& name,
                         std::int64_t start_ms, const Json& tags) const;

  // Logs a list of {key, value, timestamp, step}, 1,000 at most.
  void log_metrics(const std::string& run, const Json& metrics) const;
  // Logs a list of {key, value}, 100 at most.
  void log_params(const std::string& run, const Json& params) const;

  // Sets RUNNING, FINISHED, FAILED or KILLED; `end_ms` 0: none. False: the server has no such run.
  bool set_status(const std::string& run, const std::string& status, std::int64_t end_ms) const;

  const std::string& place() const { return server_.place(); }

 private:
  JsonAnswer post(const std::string& call, const Json& body) const;
  JsonAnswer accepted(JsonAnswer answer) const;
  // Throws core::StorageError if the answer has no such text.
  std::string text_in(const JsonAnswer& answer, const char* pointer) const;

  JsonServer server_;
};

// A name that MLflow takes for a metric or parameter: other characters are replaced by '_'.
std::string mlflow_name(std::string name);

}  // namespace scaletrain::track
