// Training task: defines a sample, its loss, and the measures of an evaluation. Everything outside
// a task says batch, target and measure.
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

// kExtra is the first set of data.extra in the order of their names; the next ones follow.
enum class Split : std::size_t { kTrain, kVal, kTest, kExtra };
Split extra_split(std::size_t number);  // `number` from 0
// "train", "val", "test", "extra/NAME".
std::string name_of(Split split, const recipe::Data& data);
// The held-out set of a name, nullopt where `data` has none of it.
std::optional<Split> find_split(const recipe::Data& data, const std::string& name);
// A set that `data` has.
const recipe::Source& source_of(const recipe::Data& data, Split split);

// How this rank reads.
struct Reader {
  data::ReaderSlice slice;
  int threads = 1;
  std::shared_ptr<const storage::Stores> stores;
  bool warns = false;  // warns of files that are left alone
  // The classes that labels are matched with (data::OpenOptions); {}: the set's own numbers count.
  format::ClassNames classes = {};
  // Shard facts in a checkpoint of a streamed order, -1: unknown.
  std::vector<std::int64_t> shard_sizes = {}, shard_digests = {};
};

struct OpenSet {
  std::shared_ptr<const data::SampleSet> set;
  std::unique_ptr<data::BatchStream> stream;  // goes before the set
  std::string contents;  // digest of a few samples of data.train; "": they were not looked at
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

  // Opens a set that the recipe has. Memory comes from `pool`, which outlives the stream. Throws
  // core::DataError, and core::RecipeError where there are fewer samples than one global batch.
  virtual OpenSet open(Split split, const Reader& reader, core::BufferPool& pool) = 0;

  // Only queues work on the device; the batch's memory is not needed any more when it returns.
  virtual Example prepare(const data::Batch& batch, bool training) const = 0;

  // The classes of which each sample has one; the model gives logits [samples, classes]. 0: it is
  // another task.
  virtual std::int64_t exclusive_classes() const { return 0; }
  // The classes of which each sample has any number; the model gives logits [samples, classes], and
  // an example's target is 1 for each class that the sample has. 0: it is another task.
  virtual std::int64_t independent_classes() const { return 0; }

  // Targets of `samples` samples where all have the same number, 0 where that differs.
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

  // For measures that are no sums, the numbers of each sample that they are made from: an fp32
  // tensor [samples, score_columns()] on the device. With 0 columns it is not called, and nothing
  // is kept or exchanged.
  virtual std::int64_t score_columns() const { return 0; }
  virtual at::Tensor scores(const at::Tensor& /*output*/, const Example& /*example*/) const {
    return {};
  }

  // The measures of row() that are known, in its order, from those sums and scores over all of
  // `split`. The scores are on the host in the order of the samples, whatever the number of ranks,
  // and undefined with 0 columns.
  virtual std::vector<recipe::Measured> finish(Split split, std::span<const double> sums,
                                               const at::Tensor& scores) const = 0;

  // After this call the model gives the logits of some of the classes. Throws core::RecipeError for
  // a task or a loss that needs all of them.
  virtual void cut_by(const units::ClassCut& cut);
  // After this call prepare() gives this rank's tokens of a batch, and a context in which all of
  // them attend. Throws core::RecipeError for a task whose samples are no sequences.
  virtual void share_sequences(const units::TokenCut& cut);

 private:
  const recipe::TaskRow& row_;
};

// Makes the recipe's task; batches are for `device`.
std::unique_ptr<Task> make_task(const recipe::Recipe& recipe, at::Device device);

}  // namespace scaletrain::task
