#include "lib/recipe/sections/log.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/recipe/catalog/duration.h"
#include "lib/recipe/catalog/paths.h"
#include "lib/recipe/schema/node.h"
#include "lib/recipe/schema/object.h"
#include "lib/recipe/schema/problems.h"

namespace scaletrain::recipe {
namespace {

constexpr const char* kTrackerNames = "\"tensorboard\", \"csv\", \"prometheus\" or \"wandb\"";

bool exports_to(const Log& log, std::string_view tracker) {
  return std::find(log.to.begin(), log.to.end(), tracker) != log.to.end();
}

}  // namespace

bool Log::writes_images() const { return images.value_or(exports_to(*this, "tensorboard")); }

TypePtr describe(Log& value) {
  auto keys = std::make_unique<Object>();
  keys->add("every", duration(value.every, any_unit()),
            "Logging interval in steps, epochs or minutes. Default: 10 steps.")
      .add("to", texts(value.to, kTrackerNames),
           "Experiment trackers that metrics are exported to, for example [\"tensorboard\", "
           "\"csv\"]. Their files are in OUTPUT/export. Default: none.")
      .add("port", integer(value.port, from(0).to(65535)),
           "Port on 127.0.0.1 where Prometheus scrapes the run, for example 9400. Default: 0, no "
           "port.")
      .add("textfile_folder", path(value.textfile_folder),
           "Folder for the Prometheus textfile, as node_exporter reads it. Default: "
           "OUTPUT/export.")
      .add("images", optional(value.images, [](bool& images) { return flag(images); }),
           "Pictures of the first training batch and of the most confident mistakes of each "
           "validation, in OUTPUT/media. For image tasks. Default: true with \"tensorboard\" in "
           "log.to, otherwise false.")
      .add("histograms",
           optional(value.histograms,
                    [](Duration& interval) {
                      return duration(interval, {Duration::Unit::kSteps, Duration::Unit::kEpochs});
                    }),
           "Interval of the histograms of weights and gradients in OUTPUT/histograms.jsonl, for "
           "example {\"steps\": 100}. Needs all parameters on rank 0. Default: none.");
  return keys;
}

void check(const Log& log, const Node& tree, Problems& problems) {
  for (std::size_t i = 0; i < log.to.size(); ++i) {
    const std::string& name = log.to[i];
    if (std::find(kTrackers.begin(), kTrackers.end(), name) == kTrackers.end()) {
      problems.add(written_at(tree, {"log", "to"}), "/log/to",
                   fmt::format("\"{}\" is not a tracker", name),
                   fmt::format("use {}", kTrackerNames));
    } else if (std::find(log.to.begin(), log.to.begin() + static_cast<std::ptrdiff_t>(i), name) !=
               log.to.begin() + static_cast<std::ptrdiff_t>(i)) {
      problems.add(written_at(tree, {"log", "to"}), "/log/to",
                   fmt::format("\"{}\" is there twice", name), "name each tracker once");
    }
  }
  if (exports_to(log, "prometheus")) return;
  if (log.port != 0) {
    problems.add(written_at(tree, {"log", "port"}), "/log/port", "is for Prometheus",
                 "add \"prometheus\" to log.to, or leave the port out");
  }
  if (!log.textfile_folder.empty()) {
    problems.add(written_at(tree, {"log", "textfile_folder"}), "/log/textfile_folder",
                 "is for Prometheus", "add \"prometheus\" to log.to, or leave the folder out");
  }
}

}  // namespace scaletrain::recipe
