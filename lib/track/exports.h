// All exporters of a run. A failure of one is a warning, once, and counts its records as lost; the
// others go on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/track/exporters.h"

namespace scaletrain::track {

class Exports {
 public:
  using Warn = std::function<void(const std::string& line)>;

  // Throws core::UsageError for an unknown name.
  Exports(const std::vector<std::string>& names, ExportOptions options, Warn warn);

  void write(std::span<const Record> records);
  void write_picture(const Picture& picture);
  void write_histograms(const Histograms& histograms);
  // Begins anew: metrics.jsonl is read from its beginning again.
  void begin_again();
  void finish();

  // Sockets to poll for readability, -1 for an exporter without one; serve(i) when i is readable.
  std::vector<int> sockets() const;
  void serve(std::size_t index);

  // "exported 65 records to tensorboard, csv"; an exporter that lost records says how many:
  // "csv (3 lost)".
  std::string summary() const;
  bool lost_some() const;

 private:
  struct Slot {
    const ExporterRow* row;
    std::unique_ptr<Exporter> exporter{};  // null until it could be made
    std::int64_t lost = 0;
    bool has_warned = false;
  };

  bool attempt(Slot& slot, const std::function<void()>& work);

  ExportOptions options_;
  Warn warn_;
  std::vector<Slot> slots_;
  std::int64_t records_ = 0;
};

}  // namespace scaletrain::track
