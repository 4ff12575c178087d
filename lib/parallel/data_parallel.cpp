#include "lib/parallel/data_parallel.h"

#include <torch/csrc/autograd/engine.h>

#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <utility>

#include "lib/core/process/time_ledger.h"
#include "lib/parallel/compress/compression.h"

namespace scaletrain::parallel {
namespace {

std::vector<std::vector<std::size_t>> bucket_indices(const BucketLayout& layout) {
  std::vector<std::vector<std::size_t>> indices;
  for (const auto& bucket : layout) indices.emplace_back(bucket.begin(), bucket.end());
  return indices;
}

std::int64_t bytes_of(const std::vector<units::NamedParameter>& parameters) {
  std::size_t bytes = 0;
  for (const units::NamedParameter& parameter : parameters) bytes += parameter.tensor.nbytes();
  return static_cast<std::int64_t>(bytes);
}

// Books the end of the backward that begins at `loss`, in which the Reducer waits for its
// all-reduces, as exposed communication: all gradients are computed before the first callback.
void book_wait_after_backward(const at::Tensor& loss) {
  core::TimeLedger* const ledger = core::TimeLedger::of_thread();
  if (ledger == nullptr || !loss.defined() || !loss.requires_grad()) return;
  loss.register_hook([ledger](const at::Tensor& /*gradient*/) {
    torch::autograd::Engine::get_default_engine().queue_callback(
        [ledger] { ledger->enter(core::TimeRow::kCommunication); });
  });
}

}  // namespace

// A Reducer that never rebuilds its buckets.
class StaticReducer : public c10d::Reducer {
 public:
  StaticReducer(std::vector<at::Tensor> parameters, const BucketLayout& layout,
                const c10::intrusive_ptr<c10d::ProcessGroup>& group)
      : Reducer(parameters, bucket_indices(layout), group,
                /*expect_sparse_gradients=*/std::vector<bool>(parameters.size(), false),
                /*bucket_bytes_cap=*/static_cast<std::int64_t>(kBucketBytes),
                /*find_unused_parameters=*/false, /*gradient_as_bucket_view=*/true,
                /*param_names=*/{},
                /*first_bucket_bytes_cap=*/static_cast<std::int64_t>(kFirstBucketBytes),
                /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false,
                /*bucket_bytes_cap_list=*/{}) {
    has_rebuilt_bucket_ = true;  // or else the Reducer records the order of arrival to rebuild them
  }

  // Sets all gradients to zero, as views of the buckets. Backward adds to them in place.
  void accumulate_in_buckets() {
    for (Bucket& bucket : buckets_) {
      bucket.gradients.zero_();
      for (std::size_t i = 0; i < bucket.variables.size(); ++i) {
        bucket.variables[i].mutable_grad() = bucket.bucket_views_in[i];
      }
    }
  }
};

struct DataParallel::Impl {
  const dist::Mesh& mesh;
  std::vector<units::NamedParameter> parameters;
  GradientExchange exchange = {};
  BucketLayout layout = {};
  bool synchronize = true;
  bool has_no_gradients = true;
  std::int64_t exchanged_bytes = 0;  // sent by the Reducer itself
  std::unique_ptr<Compression> compression = nullptr;
  std::unique_ptr<StaticReducer> reducer = nullptr;  // null with one rank
};

DataParallel::DataParallel(std::vector<units::NamedParameter> parameters, const dist::Mesh& mesh,
                           GradientExchange exchange)
    : impl_(std::make_unique<Impl>(Impl{
          .mesh = mesh, .parameters = std::move(parameters), .exchange = std::move(exchange)})) {
  // The ranks of a tensor-parallel group have set `counts` before.
  const bool counts = mesh.coordinate(core::Axis::kShard) == 0;
  for (units::NamedParameter& parameter : impl_->parameters) {
    parameter.counts = parameter.counts && counts;
  }
}

DataParallel::~DataParallel() = default;

const std::vector<units::NamedParameter>& DataParallel::owned() const { return impl_->parameters; }

void DataParallel::start(const BucketLayout& saved) {
  dist::Group& group = impl_->exchange.ranks(impl_->mesh);
  if (group.world_size() == 1) return;
  std::vector<at::Tensor> tensors;
  tensors.reserve(impl_->parameters.size());
  for (const units::NamedParameter& parameter : impl_->parameters) {
    tensors.push_back(parameter.tensor);
  }
  impl_->layout = saved.empty() ? make_layout(tensors) : saved;
  check_layout(impl_->layout, tensors.size());
  impl_->reducer =
      std::make_unique<StaticReducer>(std::move(tensors), impl_->layout, group.process_group());
  if (!impl_->exchange.compress) return;
  impl_->compression =
      std::make_unique<Compression>(*impl_->exchange.compress, impl_->exchange.seed, group);
  for (const auto& bucket : impl_->layout) {
    impl_->compression->add(slots_of(impl_->parameters, bucket));
  }
  impl_->reducer->register_comm_hook(
      std::make_unique<ExchangeHook>(&impl_->compression->exchanges()));
}

void DataParallel::begin_step(std::int64_t step) {
  if (impl_->compression) impl_->compression->begin_step(step);
}

void DataParallel::end_step(const at::Tensor& found_inf) {
  if (impl_->compression) impl_->compression->end_step(found_inf);
}

std::int64_t DataParallel::exchanged_bytes() const {
  return impl_->compression ? impl_->compression->bytes() : impl_->exchanged_bytes;
}

units::Shards DataParallel::state() {
  return impl_->compression ? impl_->compression->state() : units::Shards();
}

void DataParallel::begin_micro_step(bool synchronize) {
  impl_->synchronize = synchronize;
  const bool is_first = std::exchange(impl_->has_no_gradients, false);
  const bool accumulates = !synchronize;
  // Gradients outside the buckets would be in memory twice.
  if (is_first && accumulates && impl_->reducer) impl_->reducer->accumulate_in_buckets();
}

void DataParallel::prepare_backward(const at::Tensor& loss) {
  // Without begin_micro_step(true) backward only accumulates (gradient accumulation).
  if (!impl_->reducer || !impl_->synchronize) return;
  impl_->reducer->prepare_for_backward({loss});
  book_wait_after_backward(loss);
  impl_->exchanged_bytes += bytes_of(impl_->parameters);
}

void DataParallel::zero_grad() {
  for (units::NamedParameter& parameter : impl_->parameters) {
    parameter.tensor.mutable_grad().reset();
  }
  impl_->has_no_gradients = true;
}

BucketLayout DataParallel::layout() const { return impl_->layout; }

}  // namespace scaletrain::parallel
