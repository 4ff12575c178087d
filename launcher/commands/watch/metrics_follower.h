// Reads a run's metrics.jsonl as it grows, as curves over the optimizer steps.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/observe/line_follower.h"
#include "lib/observe/plot.h"

namespace scaletrain::launcher {

// Curves of the steps that count: a later attempt replaces the steps that it repeats.
struct RunCurves {
  std::vector<observe::PlotPoint> loss{}, lr{};
  std::vector<observe::PlotPoint> throughput{};        // samples/s, or tokens/s
  bool counts_tokens = false;                          // throughput of a language model
  std::vector<observe::PlotPoint> validation{};        // of split "val", first measure of the task
  std::string measure{};                               // name of that measure: "top1"
  std::vector<std::pair<std::string, double>> rows{};  // seconds of all ledger records
  double seconds = 0;                // from the first to the last record of each attempt, summed
  std::optional<double> peak_bytes;  // newest peak memory of a rank
  std::int64_t attempt = -1;         // newest one; -1: no record yet
};

class MetricsFollower {
 public:
  explicit MetricsFollower(std::filesystem::path file) : lines_(std::move(file)) {}

  // Reads the whole lines that were appended since the last call. A file that became shorter is
  // read from its beginning. Lines that do not parse are left out.
  void read();

  const RunCurves& curves() const { return curves_; }

 private:
  void add(const nlohmann::ordered_json& record);
  void add_time(double time);

  observe::LineFollower lines_;
  RunCurves curves_;
  double last_time_ = 0;  // of the newest attempt's records, Unix seconds; 0: none yet
};

}  // namespace scaletrain::launcher
