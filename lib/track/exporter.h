// Interface of an exporter: it writes the records of a run in the format of one experiment tracker.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "lib/track/media.h"
#include "lib/track/record.h"

namespace scaletrain::track {

struct ExportOptions {
  std::filesystem::path run;                // run folder
  std::string name;                         // run name
  std::int64_t port = 0;                    // Prometheus on 127.0.0.1; 0: none
  std::filesystem::path textfile_folder{};  // Prometheus textfile; "": RUN/export
};

class Exporter {
 public:
  virtual ~Exporter() = default;

  // Writes records in the order of metrics.jsonl. Throws core::Error: none of them counts as
  // written then.
  virtual void write(std::span<const Record> records) = 0;

  // For trackers that show pictures or histograms. Throw core::Error.
  virtual void write_picture(const Picture& /*picture*/) {}
  virtual void write_histograms(const Histograms& /*histograms*/) {}

  // Called once, when the run has ended. Throws core::Error.
  virtual void finish() {}

  // Descriptor of a socket: serve() is called when it is readable; -1: there is none.
  virtual int socket() const { return -1; }
  virtual void serve() {}
};

}  // namespace scaletrain::track
