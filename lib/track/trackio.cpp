#include "lib/track/trackio.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "lib/core/clock.h"
#include "lib/core/disk/disk.h"
#include "lib/core/text/json_text.h"
#include "lib/track/run_config.h"
#include "lib/track/sqlite.h"
#include "lib/track/tensorboard.h"

namespace scaletrain::track {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kDatabase = "scaletrain.db";

// Tables that a reader needs; trackio adds the others, and its indexes, when it opens the file.
constexpr std::array kTables{
    "CREATE TABLE IF NOT EXISTS metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, "
    "run_id TEXT NOT NULL, timestamp TEXT NOT NULL, run_name TEXT NOT NULL, "
    "step INTEGER NOT NULL, metrics TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS configs (id INTEGER PRIMARY KEY AUTOINCREMENT, "
    "run_id TEXT NOT NULL, run_name TEXT NOT NULL, config TEXT NOT NULL, "
    "created_at TEXT NOT NULL, UNIQUE(run_id))",
    "CREATE TABLE IF NOT EXISTS system_metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, "
    "run_id TEXT NOT NULL, timestamp TEXT NOT NULL, run_name TEXT NOT NULL, "
    "metrics TEXT NOT NULL)",
};

fs::path made_folder(const fs::path& folder) {
  core::system_disk().make_folders(folder);
  return folder;
}

// Returns the metrics of a record as JSON; "" if it has none.
std::string metrics_json(const Record& record) {
  Json metrics = Json::object();
  for (const Field& field : record.fields) {
    const std::string tag = scalar_tag(record, field.name);
    if (!tag.empty()) metrics[tag] = std::isnan(field.value) ? Json("NaN") : Json(field.value);
  }
  return metrics.empty() ? "" : core::json_text(metrics);
}

class Trackio : public Exporter {
 public:
  Trackio(ExportOptions options, const fs::path& folder)
      : options_(std::move(options)), database_(made_folder(folder) / kDatabase) {
    for (const char* const table : kTables) database_.run(table);
  }

  void write(std::span<const Record> records) override {
    database_.check_file();
    SqlTransaction transaction(database_);
    std::string key = key_;
    if (key.empty()) {
      key = run_key(options_.name, records.front());
      begin_run(key, records.front());
    }
    std::int64_t attempt = attempt_;
    for (const Record& record : records) {
      if (record.attempt < attempt) continue;
      if (record.attempt > attempt) remove_from(key, record.step);
      attempt = record.attempt;
      insert(key, record);
    }
    transaction.commit();
    key_ = key;
    attempt_ = attempt;
  }

 private:
  // Removes the rows of an earlier export of this run, since all records are exported again.
  void begin_run(const std::string& key, const Record& first) {
    remove_from(key, 0);
    database_.run("DELETE FROM configs WHERE run_id = ?", {key});
    database_.run(
        "INSERT INTO configs (run_id, run_name, config, created_at) VALUES (?, ?, ?, ?)",
        {key, options_.name, core::json_text(run_recipe(options_.run)), iso_time(first.time)});
  }

  // A later attempt repeats the steps from its first one on.
  void remove_from(const std::string& key, std::int64_t step) {
    database_.run("DELETE FROM metrics WHERE run_id = ? AND step >= ?", {key, step});
  }

  void insert(const std::string& key, const Record& record) {
    const std::string metrics = metrics_json(record);
    if (metrics.empty()) return;
    database_.run(
        "INSERT INTO metrics (run_id, timestamp, run_name, step, metrics) VALUES (?, ?, ?, ?, ?)",
        {key, iso_time(record.time), options_.name, record.step, metrics});
  }

  ExportOptions options_;
  Sqlite database_;
  std::string key_;            // "" before the first record
  std::int64_t attempt_ = -1;  // newest one that was written
};

}  // namespace

std::string iso_time(double time) {
  const double seconds = std::floor(time);
  const auto whole = static_cast<std::time_t>(seconds);
  std::tm utc{};
  gmtime_r(&whole, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  const auto microseconds = static_cast<std::int64_t>((time - seconds) * 1e6);
  return fmt::format("{}.{:06}+00:00", text.data(), microseconds);
}

std::unique_ptr<Exporter> make_trackio_in(const ExportOptions& options, const fs::path& folder) {
  return std::make_unique<Trackio>(options, folder);
}

std::unique_ptr<Exporter> make_trackio(const ExportOptions& options) {
  const char* const folder = std::getenv("TRACKIO_DIR");
  const bool is_set = folder != nullptr && *folder != '\0';
  return make_trackio_in(options, is_set ? fs::path(folder) : options.run / "export" / "trackio");
}

}  // namespace scaletrain::track
