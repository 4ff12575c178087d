// Logging of metrics, and the experiment trackers that they are exported to.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/recipe/catalog/values.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// Names that log.to accepts; lib/track/exporters.h has a row for each.
inline constexpr std::array<std::string_view, 4> kTrackers{"tensorboard", "csv", "prometheus",
                                                           "wandb"};

struct Log {
  Duration every{Duration::Unit::kSteps, 10};
  std::vector<std::string> to{};            // trackers, each once; empty: metrics.jsonl only
  std::int64_t port = 0;                    // Prometheus, on 127.0.0.1; 0: no socket
  std::string textfile_folder = {};         // Prometheus textfiles, absolute; "": RUN/export
  std::optional<bool> images = {};          // nullopt: if a tracker shows images
  std::optional<Duration> histograms = {};  // in steps or epochs; nullopt: none

  // True if rank 0 writes pictures of the first batch and of the worst errors.
  bool writes_images() const;
};

TypePtr describe(Log& value);

void check(const Log& log, const Node& tree, Problems& problems);

}  // namespace scaletrain::recipe
