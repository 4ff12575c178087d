#include "lib/track/exporters.h"

#include <algorithm>
#include <array>
#include <string>

#include "lib/core/error.h"
#include "lib/track/csv_file.h"
#include "lib/track/mlflow.h"
#include "lib/track/mlperf.h"
#include "lib/track/prometheus.h"
#include "lib/track/tensorboard.h"
#include "lib/track/trackio.h"
#include "lib/track/wandb.h"

namespace scaletrain::track {
namespace {

constexpr std::array kRows{
    ExporterRow{.name = "tensorboard", .make = make_tensorboard, .shows_media = true},
    ExporterRow{.name = "csv", .make = make_csv},
    ExporterRow{.name = "prometheus", .make = make_prometheus},
    ExporterRow{.name = "wandb", .make = make_wandb},
    ExporterRow{.name = "mlflow", .make = make_mlflow, .batch = 64, .resumes = true},
    ExporterRow{.name = "trackio", .make = make_trackio},
    ExporterRow{.name = "mlperf", .make = make_mlperf},
};

}  // namespace

std::span<const ExporterRow> exporters() { return kRows; }

const ExporterRow& find_exporter(std::string_view name) {
  const auto found = std::find_if(kRows.begin(), kRows.end(),
                                  [&](const ExporterRow& row) { return row.name == name; });
  if (found != kRows.end()) return *found;
  std::string names;
  for (const ExporterRow& row : kRows) names += (names.empty() ? "" : ", ") + std::string(row.name);
  throw core::UsageError("--to", "\"" + std::string(name) + "\" is not a tracker",
                         "use one of: " + names);
}

}  // namespace scaletrain::track
