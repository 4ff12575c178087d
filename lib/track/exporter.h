// Interface of an exporter: it writes the records of a run in the format of one experiment tracker.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "lib/track/feed/sink.h"
#include "lib/track/record.h"

namespace scaletrain::track {

struct ExportOptions {
  std::filesystem::path run;                // run folder
  std::string name;                         // run name
  std::int64_t port = 0;                    // Prometheus on 127.0.0.1; 0: none
  std::filesystem::path textfile_folder{};  // Prometheus textfile; "": RUN/export
};

using Exporter = Sink<Record>;

}  // namespace scaletrain::track
