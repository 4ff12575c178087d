// Prometheus exporter: the newest values of a run in text format 0.0.4, as a textfile for
// node_exporter and, with a port, on 127.0.0.1. With the newest samples of devices while it runs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "lib/track/exporter.h"

namespace scaletrain::track {

// Returns `text` with backslash, quote and newline escaped, as the value of a label.
std::string escape_label(const std::string& text);

class PrometheusText {
 public:
  explicit PrometheusText(const std::string& run_name);

  void add(const Record& record);
  void set_running(bool running);

  // Returns the samples with their HELP and TYPE lines, one metric after the other.
  std::string text() const;

 private:
  // Values by metric name and labels.
  std::map<std::string, std::map<std::string, std::string>> values_;
  std::string run_;  // label of the run: run="NAME"
};

std::unique_ptr<Exporter> make_prometheus(const ExportOptions& options);

}  // namespace scaletrain::track
