// Interface of an exporter: it writes the records of a run in the format of one experiment tracker.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "lib/track/feed/sink.h"
#include "lib/track/media.h"
#include "lib/track/record.h"

namespace scaletrain::track {

struct ExportOptions {
  std::filesystem::path run;                // run folder
  std::string name;                         // run name
  std::int64_t port = 0;                    // Prometheus on 127.0.0.1; 0: none
  std::filesystem::path textfile_folder{};  // Prometheus textfile; "": RUN/export
};

class Exporter : public Sink<Record> {
 public:
  // For trackers that show pictures and histograms. Throw as write().
  virtual void write_pictures(std::span<const Picture> /*pictures*/) {}
  virtual void write_histograms(std::span<const Histograms> /*histograms*/) {}
};

}  // namespace scaletrain::track
