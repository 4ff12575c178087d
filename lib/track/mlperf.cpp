#include "lib/track/mlperf.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "lib/core/clock.h"
#include "lib/core/disk/disk.h"
#include "lib/core/text/json_text.h"
#include "lib/track/append_file.h"
#include "lib/track/run_config.h"

namespace scaletrain::track {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kPointInTime = "POINT_IN_TIME";
constexpr const char* kIntervalStart = "INTERVAL_START";
constexpr const char* kIntervalEnd = "INTERVAL_END";

constexpr std::int64_t kMaxStartBytes = 1 << 20;

struct RunKey {
  const char* file;  // of the run folder
  const char* pointer;
  const char* key;
};

// Values of a run that MLPerf requires.
constexpr std::array kRunKeys{
    RunKey{"recipe.json", "/seed", "seed"},
    RunKey{"start.json", "/batch/global", "global_batch_size"},
    RunKey{"recipe.json", "/optimizer/name", "opt_name"},
    RunKey{"recipe.json", "/optimizer/lr", "opt_base_learning_rate"},
};

// A file of the run folder; null if it is absent or no JSON.
Json json_of(const std::filesystem::path& file) {
  std::error_code absent;
  if (!std::filesystem::exists(file, absent)) return nullptr;
  const Json json = Json::parse(core::read_file(file, kMaxStartBytes, core::ExitCode::kStorage),
                                nullptr, /*allow_exceptions=*/false);
  return json.is_discarded() ? Json(nullptr) : json;
}

const Field* find_field(const Record& record, const char* name) {
  for (const Field& field : record.fields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

Json number_of(const Field& field) {
  return std::isnan(field.value) ? Json(nullptr) : Json(field.value);
}

class Mlperf : public Exporter {
 public:
  explicit Mlperf(const ExportOptions& options)
      : options_(options), file_(options.run / "export" / "mlperf.log") {}

  void write(std::span<const Record> records) override {
    std::string lines;
    std::optional<std::int64_t> epoch = epoch_;
    bool has_begun = has_begun_;
    for (const Record& record : records) {
      if (!std::exchange(has_begun, true)) lines += first_lines(record.time);
      lines += lines_of(record, epoch);
    }
    file_.append(lines);
    epoch_ = epoch;
    has_begun_ = has_begun;
    last_time_ = records.back().time;
  }

  void finish() override {
    if (!has_begun_) return;
    std::string lines;
    if (epoch_) {
      lines +=
          mlperf_line({last_time_, kIntervalEnd, "epoch_stop"}, nullptr, {{"epoch_num", *epoch_}});
    }
    const bool is_finished = run_end(options_.run) == RunEnd::kFinished;
    file_.append(lines + mlperf_line({core::unix_time(), kIntervalEnd, "run_stop"}, nullptr,
                                     {{"status", is_finished ? "success" : "aborted"}}));
  }

 private:
  std::string first_lines(double time) const {
    std::string lines;
    for (const auto& [file, pointer, key] : kRunKeys) {
      const Json json = json_of(options_.run / file);
      const Json::json_pointer place(pointer);
      if (!json.contains(place) || !json.at(place).is_primitive()) continue;
      lines += mlperf_line({time, kPointInTime, key}, json.at(place), Json::object());
    }
    return lines + mlperf_line({time, kIntervalStart, "run_start"}, nullptr, Json::object());
  }

  // `epoch`: current epoch, which ends when a training record has another one.
  static std::string lines_of(const Record& record, std::optional<std::int64_t>& epoch) {
    std::string lines;
    Json metadata{{"step", record.step}};
    const Field* const now = find_field(record, "epoch");
    if (now != nullptr) metadata["epoch_num"] = static_cast<std::int64_t>(now->value);
    if (const Field* const samples = find_field(record, "samples")) {
      metadata["samples_count"] = static_cast<std::int64_t>(samples->value);
    }
    const auto point = [&](const char* name, const char* key) {
      const Field* const field = find_field(record, name);
      if (field == nullptr) return;
      lines += mlperf_line({record.time, kPointInTime, key}, number_of(*field), metadata);
    };
    if (record.event == "train") {
      if (now != nullptr && epoch != static_cast<std::int64_t>(now->value)) {
        if (epoch) {
          lines += mlperf_line({record.time, kIntervalEnd, "epoch_stop"}, nullptr,
                               {{"epoch_num", *epoch}});
        }
        epoch = static_cast<std::int64_t>(now->value);
        lines += mlperf_line({record.time, kIntervalStart, "epoch_start"}, nullptr,
                             {{"epoch_num", *epoch}});
      }
      point("loss", "train_loss");
    } else if (record.event == "eval") {
      metadata["split"] = record.split;
      point("top1", "eval_accuracy");
      point("loss", "eval_loss");
    }
    return lines;
  }

  ExportOptions options_;
  AppendFile file_;
  std::optional<std::int64_t> epoch_;  // under way
  bool has_begun_ = false;
  double last_time_ = 0;
};

}  // namespace

std::string mlperf_line(const MlperfEvent& event, const Json& value, const Json& metadata) {
  Json where{{"file", "scaletrain"}, {"lineno", 0}};
  where.update(metadata);
  return ":::MLLOG " +
         core::json_text(Json{{"namespace", ""},
                              {"time_ms", std::llround(event.time * 1000)},
                              {"event_type", event.type},
                              {"key", event.key},
                              {"value", value},
                              {"metadata", where}}) +
         "\n";
}

std::unique_ptr<Exporter> make_mlperf(const ExportOptions& options) {
  return std::make_unique<Mlperf>(options);
}

}  // namespace scaletrain::track
