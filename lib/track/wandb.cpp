#include "lib/track/wandb.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/track/append_file.h"
#include "lib/track/run_config.h"
#include "lib/track/tensorboard.h"

namespace scaletrain::track {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Removes the offline runs of an earlier exporter: the new ones begin with the first record.
fs::path emptied(const fs::path& folder) {
  core::system_disk().make_folders(folder);
  std::vector<fs::path> old;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("offline-run-")) old.push_back(entry.path());
  }
  for (const fs::path& path : old) core::system_disk().remove_all(path);
  return folder;
}

// The folder of an attempt, offline-run-YYYYMMDD_HHMMSS-ID in UTC.
std::string segment_name(std::int64_t time, const std::string& id) {
  const auto seconds = static_cast<std::time_t>(time);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%d_%H%M%S", &utc);
  return fmt::format("offline-run-{}-{}", text.data(), id);
}

class Wandb : public Exporter {
 public:
  explicit Wandb(const ExportOptions& options)
      : options_(options), folder_(emptied(options.run / "export" / "wandb")) {}

  void write(std::span<const Record> records) override {
    for (const Record& record : records) {
      if (record.attempt < attempt_) continue;
      if (!file_ || record.attempt > attempt_) begin_segment(record);
      add(record);
    }
    flush();
  }

  void finish() override {
    if (!file_) return;
    end_segment(run_end(options_.run) == RunEnd::kFinished ? 0 : 1);
  }

 private:
  void begin_segment(const Record& first) {
    if (file_) end_segment(0);
    file_.reset();
    const bool is_resumed = attempt_ >= 0;
    if (!is_resumed) {
      id_ = run_key(options_.name, first);
      begin_time_ = first.time;
    }
    const std::int64_t time =
        std::max(segment_time_ + 1, static_cast<std::int64_t>(std::floor(first.time)));
    const WandbRun run{.id = id_,
                       .name = options_.name,
                       .config = wandb_config(run_recipe(options_.run)),
                       .start_time = first.time,
                       .starting_step = first.step,
                       .is_resumed = is_resumed};
    AppendFile file(folder_ / segment_name(time, id_) / fmt::format("run-{}.wandb", id_));
    file.append(wandb_file_header());
    file_.emplace(std::move(file));
    segment_time_ = time;
    attempt_ = first.attempt;
    count_ = 0;
    step_ = first.step;
    pending_.clear();
    row_.clear();
    add_frame(wandb_header_record(++count_));
    add_frame(wandb_run_record(++count_, run));
  }

  // Adds the values of a record to the row of its step: a step has one row. Readers expect rising
  // steps, so the evaluation of an earlier checkpoint joins the newest row.
  void add(const Record& record) {
    if (!row_.empty() && record.step > step_) end_row();
    step_ = std::max(step_, record.step);
    for (const Field& field : record.fields) {
      const std::string tag = scalar_tag(record, field.name);
      if (!tag.empty()) row_[tag] = std::isnan(field.value) ? "NaN" : field.text;
    }
    row_["_step"] = std::to_string(step_);
    row_["_timestamp"] = fmt::format("{}", record.time);
    row_["_runtime"] = fmt::format("{}", record.time - begin_time_);
  }

  void end_row() {
    if (row_.empty()) return;
    add_frame(wandb_history_record(++count_, step_, row_));
    for (auto& [key, json] : row_) summary_[key] = std::move(json);
    row_.clear();
  }

  void end_segment(int exit_code) {
    end_row();
    const auto runtime = summary_.find("_runtime");
    const double runtime_s = runtime == summary_.end() ? 0 : std::stod(runtime->second);
    add_frame(wandb_summary_record(++count_, summary_));
    add_frame(wandb_exit_record(++count_, exit_code, std::llround(std::max(0.0, runtime_s))));
    add_frame(wandb_footer_record(++count_));
    flush();
  }

  void add_frame(const std::string& record) {
    pending_ += wandb_frame(record, file_->bytes() + static_cast<std::int64_t>(pending_.size()));
  }

  // A block that cannot be written is dropped: its records count as lost.
  void flush() {
    if (file_ && !pending_.empty()) file_->append(std::exchange(pending_, {}));
  }

  ExportOptions options_;
  fs::path folder_;
  std::optional<AppendFile> file_;  // of the newest attempt
  std::string id_;                  // "" before the first record
  double begin_time_ = 0;           // of the first record
  std::int64_t segment_time_ = 0;   // in the name of the newest folder
  std::int64_t attempt_ = -1;
  std::int64_t count_ = 0;  // records of the file
  std::string pending_;     // frames that are not written yet
  std::int64_t step_ = 0;
  JsonByKey row_;  // of step_, not in pending_ yet
  JsonByKey summary_;
};

}  // namespace

JsonByKey wandb_config(const Json& recipe) {
  JsonByKey config;
  for (const auto& item : recipe.items()) {
    Json value = item.value();
    hide_secrets(value);
    config[item.key()] = value.dump();
  }
  return config;
}

std::unique_ptr<Exporter> make_wandb(const ExportOptions& options) {
  return std::make_unique<Wandb>(options);
}

}  // namespace scaletrain::track
