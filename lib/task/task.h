// Training task: defines a sample, its loss, and the measures of an evaluation. Code outside of a
// task uses only the terms batch, target and metric.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/core/buffer.h"
#include "lib/data/loader/batch_stream.h"
#include "lib/data/order/batch_job.h"
#include "lib/data/set/sample_set.h"
#include "lib/format/tar/class_names.h"
#include "lib/recipe/catalog/task.h"
#include "lib/recipe/sections/data/data.h"
#include "lib/recipe/sections/data/source.h"
#include "lib/storage/stores.h"
#include "lib/units/layer_cut.h"
#include "lib/units/token_cut.h"
#include "lib/units/unit.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::task {

// kExtra is the first set of data.extra by name; later ones have the next values.
enum class Split : std::size_t { kTrain, kVal, kTest, kExtra };
Split extra_split(std::size_t number);  // `number` from 0
// "train", "val", "test", "extra/NAME".
std::string name_of(Split split, const recipe::Data& data);
// Returns the held-out set called `name`; nullopt if `data` has none.
std::optional<Split> find_split(const recipe::Data& data, const std::string& name);
// Returns the source of a set that `data` has.
const recipe::Source& source_of(const recipe::Data& data, Split split);

// How a rank reads a set of samples.
struct Reader {
  data::ReaderSlice slice;
  int threads = 1;
  std::shared_ptr<const storage::Stores> stores;
  bool warns = false;  // warns of ignored files
  // Classes to which labels are mapped by name (data::OpenOptions); {}: the set's own numbers are
  // used.
  format::ClassNames classes = {};
  // Sizes and digests of shards from a checkpoint with a streamed order; -1: unknown.
  std::vector<std::int64_t> shard_sizes = {}, shard_digests = {};
};

struct OpenSet {
  std::shared_ptr<const data::SampleSet> set;
  std::unique_ptr<data::BatchStream> stream;  // destroyed before the set
  std::string contents;  // digest of a few samples of data.train; "": not computed
};

// A batch on the device, as the model takes it.
struct Example {
  at::Tensor input, target;
  units::Context context = {};  // side values that all units may need
};

class Task {
 public:
  explicit Task(const recipe::TaskRow& row) : row_(row) {}
  virtual ~Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  const recipe::TaskRow& row() const { return row_; }

  // Opens a set of the recipe. Memory comes from `pool`, which must outlive the stream. Throws
  // core::DataError, and core::RecipeError for fewer samples than one global batch.
  virtual OpenSet open(Split split, const Reader& reader, core::BufferPool& pool) = 0;

  // Only queues work on the device; the batch may be destroyed after the call.
  virtual Example prepare(const data::Batch& batch, bool training) const = 0;

  // Number of classes of single-label classification, with logits [samples, classes]; 0 for other
  // tasks.
  virtual std::int64_t exclusive_classes() const { return 0; }
  // Number of classes of multi-label classification, with logits [samples, classes] and targets of
  // 0 or 1; 0 for other tasks.
  virtual std::int64_t independent_classes() const { return 0; }

  // Returns the number of targets in `samples` samples, if every sample has the same number;
  // otherwise 0.
  virtual std::int64_t fixed_targets(std::int64_t samples) const = 0;
  // Returns a training batch's share of the divisor of the mean loss: its targets, or the sum of
  // their weights where they have weights and fixed_targets() is 0.
  virtual double weight_of(const data::Batch& batch) const {
    const std::int64_t fixed = fixed_targets(batch.count);
    return static_cast<double>(fixed > 0 ? fixed : batch.targets);
  }

  // Returns the training loss: the sum over the batch's targets, a 0-dim fp32 tensor.
  virtual at::Tensor loss_sum(const at::Tensor& output, const Example& example) const = 0;

  // Evaluation sums that are added up over batches and ranks: doubles on the device, sum_count() of
  // them, which begin with the loss without label smoothing and the targets.
  enum CommonSum : std::size_t { kLoss, kTargets };
  virtual std::int64_t sum_count() const = 0;
  virtual at::Tensor sums(const at::Tensor& output, const Example& example) const = 0;

  // Scores of each sample for measures that are not sums, an fp32 tensor [samples, score_columns()]
  // on the device. With 0 columns it is not called, and nothing is stored or communicated.
  virtual std::int64_t score_columns() const { return 0; }
  virtual at::Tensor scores(const at::Tensor& /*output*/, const Example& /*example*/) const {
    return {};
  }

  // Computes the measures of row(), in its order, from those sums and scores over all of `split`;
  // unknown ones are left out. The scores are on the host in sample order, whatever the number of
  // ranks, and undefined with 0 columns.
  virtual std::vector<recipe::Measured> finish(Split split, std::span<const double> sums,
                                               const at::Tensor& scores) const = 0;

  // Makes the task vocabulary-parallel: the model then returns logits of some of the classes.
  // Throws core::RecipeError for a task or loss that needs all of them.
  virtual void cut_by(const units::ClassCut& cut);
  // Makes the task context-parallel: prepare() then returns this rank's tokens and a context for
  // attention over all tokens. Throws core::RecipeError for a task whose samples are not sequences.
  virtual void share_sequences(const units::TokenCut& cut);

 private:
  const recipe::TaskRow& row_;
};

// Makes the recipe's task; batches are for `device`.
std::unique_ptr<Task> make_task(const recipe::Recipe& recipe, at::Device device);

}  // namespace scaletrain::task
