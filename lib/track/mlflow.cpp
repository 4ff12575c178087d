#include "lib/track/mlflow.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "lib/core/clock.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/text/json_text.h"
#include "lib/track/run_config.h"
#include "lib/track/tensorboard.h"

namespace scaletrain::track {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMostMetrics = 1000;  // of one call
constexpr std::size_t kMostParams = 100;
constexpr std::size_t kLongestParam = 500;  // bytes; longer values are truncated
constexpr std::int64_t kMaxProgressBytes = 1 << 16;
constexpr double kSaveEveryS = 5;
constexpr const char* kKeyTag = "scaletrain.run";
constexpr const char* kDefaultExperiment = "scaletrain";

std::int64_t to_ms(double seconds) { return std::llround(seconds * 1000); }

// The metrics of a record under TensorBoard's tags; a value that is not finite is a text, as
// Protocol Buffers write it in JSON.
Json metrics_of(const Record& record) {
  Json metrics = Json::array();
  for (const Field& field : record.fields) {
    const std::string tag = scalar_tag(record, field.name);
    if (tag.empty()) continue;
    metrics.push_back({{"key", mlflow_name(tag)},
                       {"value", std::isnan(field.value) ? Json("NaN") : Json(field.value)},
                       {"timestamp", to_ms(record.time)},
                       {"step", record.step}});
  }
  return metrics;
}

// Progress of the run on the server, stored in RUN/export/mlflow.json.
struct Progress {
  std::string server{}, key{};
  std::string run{};      // "" before it is created
  std::int64_t sent = 0;  // records
};

Progress read_progress(const fs::path& file) {
  std::error_code absent;
  if (!fs::exists(file, absent)) return {};
  const Json json = Json::parse(core::read_file(file, kMaxProgressBytes, core::ExitCode::kStorage),
                                nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return {};
  return {.server = json.value("server", ""),
          .key = json.value("key", ""),
          .run = json.value("run_id", ""),
          .sent = json.value("sent", std::int64_t{0})};
}

const char* status_of(RunEnd end) {
  constexpr std::array kStatus{"FINISHED", "FAILED", "KILLED"};
  return kStatus[static_cast<std::size_t>(end)];
}

class Mlflow : public Exporter {
 public:
  Mlflow(const ExportOptions& options, const storage::Variables& variables, SendHttp send)
      : options_(options),
        file_(options.run / "export" / "mlflow.json"),
        experiment_(variables("MLFLOW_EXPERIMENT_NAME")),
        client_(mlflow_server(variables, std::move(send))) {
    if (experiment_.empty()) experiment_ = kDefaultExperiment;
  }

  void write(std::span<const Record> records) override {
    if (key_.empty()) key_ = run_key(options_.name, records.front());
    const auto end = count_ + static_cast<std::int64_t>(records.size());
    if (!is_open_) open_run(records.front());
    while (progress_.sent < end) {
      send_some(records.subspan(static_cast<std::size_t>(std::max(progress_.sent - count_, {}))));
    }
    count_ = end;
    if (core::seconds_since(saved_) > kSaveEveryS) save();
  }

  void finish() override {
    if (!is_open_) return;
    client_.set_status(progress_.run, status_of(run_end(options_.run)), to_ms(core::unix_time()));
    save();
  }

 private:
  // Continues the run that an earlier exporter has created, or creates one. If the answer was lost,
  // the run may exist, so it is searched first.
  void open_run(const Record& first) {
    progress_ = read_progress(file_);
    if (progress_.server != client_.place() || progress_.key != key_) {
      progress_ = {.server = client_.place(), .key = key_};
    }
    if (!progress_.run.empty() && !client_.set_status(progress_.run, "RUNNING", 0)) {
      progress_.run.clear();
      progress_.sent = 0;
    }
    if (progress_.run.empty()) {
      const std::string experiment = client_.experiment(experiment_);
      const std::optional<std::string> found = client_.find_run(experiment, kKeyTag, key_);
      progress_.run = found ? *found : create_run(experiment, first);
      if (found) client_.set_status(progress_.run, "RUNNING", 0);
      send_params();
      save();
    }
    is_open_ = true;
  }

  std::string create_run(const std::string& experiment, const Record& first) const {
    const Json tags{
        {kKeyTag, key_}, {"mlflow.source.name", "scaletrain"}, {"mlflow.source.type", "LOCAL"}};
    return client_.create_run(experiment, options_.name, to_ms(first.time), tags);
  }

  void send_params() const {
    Json params = Json::array();
    const auto send = [&] {
      if (!params.empty()) client_.log_params(progress_.run, params);
      params = Json::array();
    };
    for (const auto& [name, value] : flat_texts(run_recipe(options_.run))) {
      params.push_back({{"key", mlflow_name(name)}, {"value", value.substr(0, kLongestParam)}});
      if (params.size() == kMostParams) send();
    }
    send();
  }

  // Sends as many of `records`, which the server does not have yet, as one call takes; at least
  // one, whose metrics may need several calls.
  void send_some(std::span<const Record> records) {
    Json metrics = Json::array();
    std::int64_t sent = 0;
    for (const Record& record : records) {
      Json more = metrics_of(record);
      if (sent > 0 && metrics.size() + more.size() > kMostMetrics) break;
      for (Json& metric : more) {
        if (metrics.size() == kMostMetrics) {
          client_.log_metrics(progress_.run, metrics);
          metrics.clear();
        }
        metrics.push_back(std::move(metric));
      }
      ++sent;
    }
    if (!metrics.empty()) client_.log_metrics(progress_.run, metrics);
    progress_.sent += sent;
  }

  void save() {
    core::system_disk().make_folders(file_.parent_path());
    core::write_durably(core::system_disk(), file_,
                        core::json_text(Json{{"server", progress_.server},
                                             {"key", progress_.key},
                                             {"run_id", progress_.run},
                                             {"sent", progress_.sent}}) +
                            "\n");
    saved_ = core::now();
  }

  ExportOptions options_;
  fs::path file_;
  std::string experiment_;
  MlflowClient client_;
  std::string key_;       // "" before the first record
  bool is_open_ = false;  // progress_ has a run of the server
  Progress progress_;
  std::int64_t count_ = 0;  // records that write() has taken
  core::SteadyTime saved_{};
};

}  // namespace

std::unique_ptr<Exporter> make_mlflow_with(const ExportOptions& options,
                                           const storage::Variables& variables, SendHttp send) {
  return std::make_unique<Mlflow>(options, variables, std::move(send));
}

std::unique_ptr<Exporter> make_mlflow(const ExportOptions& options) {
  return make_mlflow_with(options, storage::process_variables(), {});
}

}  // namespace scaletrain::track
