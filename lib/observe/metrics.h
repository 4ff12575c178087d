// metrics.jsonl: the metrics of a run, one JSON object a line, appended.
//
// Numbers are written with the digits that read back to the same bits; a number that is not finite
// is null. Every field and its unit: docs/reference/metrics.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/housekeeping.h"
#include "lib/core/process/time_ledger.h"
#include "lib/observe/line_writer.h"
#include "lib/observe/model_speed.h"
#include "lib/observe/stragglers.h"
#include "lib/recipe/catalog/task.h"

namespace scaletrain::observe {

// Version of the file's format, in the field "format" of its first line. A new field or event does
// not raise it: readers ignore those that they do not know.
inline constexpr int kMetricsFormat = 1;

// {"event":"train", ...}
struct TrainRecord {
  int attempt = 0;
  std::int64_t step = 0;                        // counts from 1
  std::int64_t epoch = 0;                       // counts from 0
  std::int64_t samples = 0;                     // cumulative, all ranks
  double loss = 0;                              // mean over the global batch
  double lr = 0;                                // first parameter group's
  std::optional<double> weight_decay = {};      // only if it changes
  std::optional<std::int64_t> image_size = {};  // likewise
  std::optional<std::int64_t> batch = {};       // likewise: samples of the step, all ranks
  double grad_norm = 0;
  std::optional<double> loss_scale = {};                   // loss scale of the step, if any
  std::vector<std::pair<std::string, double>> model = {};  // counters of the model in the step
  double samples_per_s = 0;                                // all ranks, since the previous line
  std::optional<double> tokens_per_s = {};                 // likewise, for a language model
  std::optional<ModelSpeed> speed = {};                    // likewise; nullopt: not counted yet
  // Bytes of gradients and weights that a rank sent in collectives since the line before; nullopt:
  // no collectives.
  std::optional<std::int64_t> exchanged_bytes = {};
  std::optional<int> loader_threads = {};  // of rank 0, if a search chooses them
  double data_time = 0;                    // slowest rank's seconds a step
  double compute_time = 0;
  double read_time = 0;  // slowest rank's thread seconds a sample
  double decode_time = 0, augment_time = 0;
  std::int64_t memory_bytes = 0;  // highest rank's peak
  std::uint64_t order_digest = 0;
  std::int64_t skipped_samples = 0;  // cumulative, all ranks
  // Replica that loss, grad_norm and times are of; nullopt: all ranks.
  std::optional<int> replica = {};
};

// {"event":"eval", ...}
struct EvalRecord {
  int attempt = 0;
  std::string split;  // "val", "test", "extra/NAME"
  std::int64_t step = 0, epoch = 0;
  std::vector<recipe::Measured> measures;  // one field for each
  std::int64_t count = 0;                  // targets, over all ranks
  std::string counted;                     // unit of count: "samples"
  std::int64_t skipped = 0;                // bad samples that are not in count
  std::string weights =
      {};  // weights that were evaluated, if replicas differ: "mean"; "": not needed
};

// {"event":"ledger", ...}: the time ledger since the line before, of the rank that determined the
// pace, whose rows sum to the wall time
struct LedgerRecord {
  int attempt = 0;
  std::int64_t step = 0;
  int rank = 0;                               // highest own time: all but exposed communication
  core::RowSeconds seconds{};                 // of that rank
  std::optional<core::RowSeconds> mean = {};  // over the ranks; nullopt: there is one
  // Seconds by which the slowest rank's own time in steps exceeds that of the next one; nullopt:
  // there is one rank.
  std::optional<double> straggler_s = {};
};

// {"event":"norms", ...}: L2 norms by unit
struct NormsRecord {
  struct Unit {
    std::string unit;
    double weight = 0;    // before the update
    double gradient = 0;  // before clipping
    double update = 0;    // of the change of the weights
  };
  int attempt = 0;
  std::int64_t step = 0;
  std::vector<Unit> units = {};
};

// {"event":"straggler", ...}: once an attempt for each rank
struct StragglerRecord {
  int attempt = 0;
  std::int64_t step = 0;
  Straggler slow;
};

// {"event":"lost_replica", ...}: the others continue without it
struct LostReplicaRecord {
  int attempt = 0;
  std::int64_t step = 0;  // rank 0's step
  int replica = 0;
  std::int64_t kept_step = 0;  // steps up to this one are in the weights
  std::int64_t left = 0;       // replicas that continue
};

// {"event":"checkpoint", ...}: a checkpoint has become durable
struct SaveRecord {
  int attempt = 0;
  std::int64_t step = 0;
  std::int64_t bytes = 0, linked_bytes = 0;  // linked: shared with an earlier one
  double stall_s = 0;                        // time that training waited
  double write_s = 0;                        // time until it was durable
};

// {"event":"mirror", ...}: a remote checkpoint copy has become durable
struct MirrorRecord {
  int attempt = 0;
  std::int64_t step = 0;
  std::int64_t bytes = 0;   // 0: it existed already
  double copy_s = 0;        // seconds since it was durable in the run's folder
  std::int64_t behind = 0;  // checkpoints that became durable meanwhile
};

// {"event":"replica", ...}: a peer checkpoint is complete
struct ReplicaRecord {
  int attempt = 0;
  std::int64_t step = 0;
  std::int64_t bytes = 0;  // total over all nodes
  int nodes = 0;
};

// {"event":"comparison", ...}: data-parallel replicas were compared (recipe's integrity)
struct ComparisonRecord {
  int attempt = 0;
  std::int64_t step = 0;
  bool equal = true;
  double seconds = 0;  // time that training waited
};

// Returns the line of a record, without its newline; `time` in Unix seconds.
std::string to_json_line(const TrainRecord& record, double time);
std::string to_json_line(const EvalRecord& record, double time);
std::string to_json_line(const LedgerRecord& record, double time);
std::string to_json_line(const NormsRecord& record, double time);
std::string to_json_line(const StragglerRecord& record, double time);
std::string to_json_line(const LostReplicaRecord& record, double time);
std::string to_json_line(const SaveRecord& record, double time);
std::string to_json_line(const MirrorRecord& record, double time);
std::string to_json_line(const ReplicaRecord& record, double time);
std::string to_json_line(const ComparisonRecord& record, double time);

// Appends to RUN/metrics.jsonl (lib/observe/line_writer.h).
class MetricsWriter {
 public:
  explicit MetricsWriter(
      std::filesystem::path file,
      std::shared_ptr<core::Housekeeping> housekeeping = std::make_shared<core::Housekeeping>());

  void write(const TrainRecord& record);  // adds "time"
  void write(const EvalRecord& record);
  void write(const LedgerRecord& record);
  void write(const NormsRecord& record);
  void write(const StragglerRecord& record);
  void write(const LostReplicaRecord& record);
  void write(const SaveRecord& record);
  void write(const MirrorRecord& record);
  void write(const ReplicaRecord& record);
  void write(const ComparisonRecord& record);

 private:
  LineWriter lines_;
};

}  // namespace scaletrain::observe
