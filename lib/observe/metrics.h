// metrics.jsonl: one JSON object a line, appended; what a run leaves for plots and tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace scaletrain::observe {

// {"event":"train", ...}; units as in docs/metrics.md.
struct TrainRecord {
  int attempt = 0;
  std::int64_t step = 0;       // from 1
  std::int64_t epoch = 0;      // from 0
  std::int64_t samples = 0;    // cumulative, all ranks
  double loss = 0;             // mean over the global batch
  double lr = 0;               // of the first group
  double grad_norm = 0;
  double samples_per_s = 0;    // all ranks, since the line before
  double data_time = 0;        // slowest rank's seconds a step
  double compute_time = 0;
  std::int64_t memory_bytes = 0;  // highest rank's peak
  std::uint64_t order_digest = 0;
};

// {"event":"eval", ...}
struct EvalRecord {
  int attempt = 0;
  std::string split;           // "val" or "test"
  std::int64_t step = 0, epoch = 0;
  double loss = 0, top1 = 0, top5 = 0;  // top1, top5 in 0..1
  std::int64_t count = 0;      // over all ranks
};

// Appends to RUN/metrics.jsonl, one write(2) a line; a torn last line of a killed run is ended with
// a newline first. A write that fails is reported once and never stops the training.
class MetricsWriter {
 public:
  explicit MetricsWriter(const std::filesystem::path& file);
  ~MetricsWriter();
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  void write(const TrainRecord& record);  // adds "time"
  void write(const EvalRecord& record);

 private:
  void append(const std::string& line);
  std::filesystem::path file_;
  int fd_ = -1;
  bool failed_ = false;
};

}  // namespace scaletrain::observe
