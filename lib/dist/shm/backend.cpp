#include "lib/dist/shm/backend.h"

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <fmt/format.h>
#include <pthread.h>

#include <utility>

#include "lib/core/error.h"
#include "lib/dist/shm/sums.h"

namespace scaletrain::dist {

namespace {

class ShmWork : public c10d::Work {
 public:
  ShmWork(int rank, c10d::OpType type, std::vector<at::Tensor> outputs)
      : Work(rank, type),
        outputs_(std::move(outputs)),
        future_(c10::make_intrusive<c10::ivalue::Future>(
            c10::ListType::create(c10::TensorType::get()))) {}

  void end(const std::exception_ptr& failure) {
    if (failure) {
      future_->setError(failure);
    } else {
      future_->markCompleted(c10::IValue(outputs_));
    }
    finish(failure);
  }

  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  std::vector<at::Tensor> result() override { return outputs_; }

 private:
  const std::vector<at::Tensor> outputs_;
  const c10::intrusive_ptr<c10::ivalue::Future> future_;
};

[[noreturn]] void refuse(const std::string& what) {
  throw core::InternalError("exchange in shared memory", what);
}

const at::Tensor& only(const std::vector<at::Tensor>& tensors) {
  if (tensors.size() != 1) refuse(fmt::format("{} tensors in one call", tensors.size()));
  return tensors.front();
}

const std::vector<at::Tensor>& only(const std::vector<std::vector<at::Tensor>>& lists) {
  if (lists.size() != 1) refuse(fmt::format("{} lists of tensors in one call", lists.size()));
  return lists.front();
}

void check_dense(const at::Tensor& tensor) {
  if (!tensor.device().is_cpu() || tensor.layout() != at::kStrided ||
      !tensor.is_non_overlapping_and_dense()) {
    refuse("a tensor that is not dense, or not on the CPU");
  }
}

Bytes bytes_of(const at::Tensor& tensor) {
  check_dense(tensor);
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

ConstBytes const_bytes_of(const at::Tensor& tensor) {
  check_dense(tensor);
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

std::vector<Bytes> all_bytes_of(const std::vector<at::Tensor>& tensors, int ranks,
                                const at::Tensor& like) {
  if (tensors.size() != static_cast<std::size_t>(ranks)) {
    refuse(fmt::format("{} tensors for {} ranks", tensors.size(), ranks));
  }
  std::vector<Bytes> all;
  all.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    if (tensor.scalar_type() != like.scalar_type() || tensor.numel() != like.numel()) {
      refuse("outputs of another type or size than the input");
    }
    all.push_back(bytes_of(tensor));
  }
  return all;
}

// `whole` in as many equal parts as there are ranks.
template <class Span>
std::vector<Span> equal_parts(Span whole, int ranks, std::size_t part_bytes) {
  const auto count = static_cast<std::size_t>(ranks);
  if (whole.size() != count * part_bytes) {
    refuse(fmt::format("{} bytes, not {} for each of {} ranks", whole.size(), part_bytes, ranks));
  }
  std::vector<Span> parts;
  parts.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    parts.push_back(whole.subspan(i * part_bytes, part_bytes));
  return parts;
}

// The rows of `tensor` for each rank.
template <class Span>
std::vector<Span> row_parts(const at::Tensor& tensor, Span whole,
                            const std::vector<std::int64_t>& rows, int ranks) {
  if (!tensor.is_contiguous()) refuse("rows of a tensor that is not contiguous");
  const std::int64_t all_rows = tensor.dim() == 0 ? 1 : tensor.size(0);
  if (rows.empty()) {
    if (all_rows % ranks != 0) refuse(fmt::format("{} rows for {} ranks", all_rows, ranks));
    return equal_parts(whole, ranks, whole.size() / static_cast<std::size_t>(ranks));
  }
  const std::size_t row_bytes =
      all_rows == 0 ? 0 : whole.size() / static_cast<std::size_t>(all_rows);
  std::vector<Span> parts;
  parts.reserve(rows.size());
  std::int64_t begin = 0;
  for (const std::int64_t count : rows) {
    if (count < 0 || begin + count > all_rows) break;
    parts.push_back(whole.subspan(static_cast<std::size_t>(begin) * row_bytes,
                                  static_cast<std::size_t>(count) * row_bytes));
    begin += count;
  }
  if (parts.size() != static_cast<std::size_t>(ranks) || begin != all_rows) {
    refuse(
        fmt::format("numbers of rows that do not divide {} rows over {} ranks", all_rows, ranks));
  }
  return parts;
}

Reduction reduction_of(const at::Tensor& tensor, const c10d::ReduceOp& operation) {
  if (!can_combine(tensor.scalar_type(), operation.op_)) {
    refuse(fmt::format("operation {} of {}", static_cast<int>(operation.op_),
                       c10::toString(tensor.scalar_type())));
  }
  return {.type = tensor.scalar_type(), .operation = operation.op_};
}

}  // namespace

ShmBackend::ShmBackend(std::unique_ptr<ShmArena> arena, std::chrono::milliseconds timeout)
    : Backend(arena->rank(), arena->shape().ranks),
      exchange_(std::move(arena), timeout),
      thread_([this] { serve(); }) {}

ShmBackend::~ShmBackend() { ShmBackend::shutdown(); }

void ShmBackend::abort() {
  exchange_.give_up();
  const std::lock_guard lock(mutex_);
  ends_ = true;
  changed_.notify_all();
}

void ShmBackend::shutdown() {
  exchange_.stop();
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  const std::lock_guard lock(joining_);
  if (thread_.joinable()) thread_.join();
}

void ShmBackend::serve() {
  ::pthread_setname_np(::pthread_self(), "shm-exchange");
  std::exception_ptr failure;
  for (;;) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ends_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    try {
      if (failure) std::rethrow_exception(failure);
      task.body();
    } catch (...) {
      failure = std::current_exception();
    }
    task.body = nullptr;  // drops the tensors before the caller learns of the completion
    task.end(failure);
  }
}

ShmBackend::Work ShmBackend::submit(c10d::OpType type, Tensors outputs,
                                    std::function<void()> body) {
  auto work = c10::make_intrusive<ShmWork>(rank_, type, std::move(outputs));
  {
    const std::lock_guard lock(mutex_);
    if (!ends_) {
      tasks_.push_back({.body = std::move(body),
                        .end = [work](const std::exception_ptr& failure) { work->end(failure); }});
      changed_.notify_all();
      return work;
    }
  }
  work->end(std::make_exception_ptr(
      c10::DistNetworkError({__func__, "backend.cpp", __LINE__}, "the exchange was ended")));
  return work;
}

ShmBackend::Work ShmBackend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  const at::Tensor& tensor = only(tensors);
  const Reduction reduction = reduction_of(tensor, options.reduceOp);
  return submit(c10d::OpType::ALLREDUCE, tensors,
                [this, tensor, data = bytes_of(tensor), reduction] {
                  exchange_.all_reduce(data, reduction);
                });
}

ShmBackend::Work ShmBackend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  const at::Tensor& tensor = only(tensors);
  return submit(c10d::OpType::BROADCAST, tensors,
                [this, tensor, data = bytes_of(tensor), root = static_cast<int>(options.rootRank)] {
                  exchange_.broadcast(data, root);
                });
}

ShmBackend::Work ShmBackend::gather(std::vector<Tensors>& gathered, Tensors& tensors,
                                    const c10d::GatherOptions& options) {
  const at::Tensor& tensor = only(tensors);
  const int root = static_cast<int>(options.rootRank);
  const Tensors outputs = rank_ == root ? only(gathered) : Tensors();
  std::vector<Bytes> to;
  if (rank_ == root) to = all_bytes_of(outputs, size_, tensor);
  return submit(c10d::OpType::GATHER, outputs,
                [this, tensor, outputs, own = const_bytes_of(tensor), to = std::move(to), root] {
                  exchange_.gather(own, to, root);
                });
}

ShmBackend::Work ShmBackend::allgather(std::vector<Tensors>& gathered, Tensors& tensors,
                                       const c10d::AllgatherOptions& /*options*/) {
  const at::Tensor& tensor = only(tensors);
  const Tensors outputs = only(gathered);
  return submit(c10d::OpType::ALLGATHER, outputs,
                [this, tensor, outputs, own = const_bytes_of(tensor),
                 to = all_bytes_of(outputs, size_, tensor)] { exchange_.all_gather(own, to); });
}

ShmBackend::Work ShmBackend::_allgather_base(at::Tensor& gathered, at::Tensor& tensor,
                                             const c10d::AllgatherOptions& /*options*/) {
  if (gathered.scalar_type() != tensor.scalar_type()) refuse("an output of another type");
  const ConstBytes own = const_bytes_of(tensor);
  return submit(
      c10d::OpType::_ALLGATHER_BASE, {gathered},
      [this, tensor, gathered, own, to = equal_parts(bytes_of(gathered), size_, own.size())] {
        exchange_.all_gather(own, to);
      });
}

ShmBackend::Work ShmBackend::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                            const c10d::ReduceScatterOptions& options) {
  const at::Tensor& output = only(outputs);
  const Tensors& parts = only(inputs);
  const Reduction reduction = reduction_of(output, options.reduceOp);
  const auto own = static_cast<std::size_t>(rank_);
  if (parts.size() != static_cast<std::size_t>(size_) || parts[own].numel() != output.numel()) {
    refuse("inputs of another number or size than the output's");
  }
  std::vector<ConstBytes> from;
  from.reserve(parts.size());
  for (const at::Tensor& part : parts) {
    if (part.scalar_type() != output.scalar_type()) refuse("an input of another type");
    from.push_back(const_bytes_of(part));
  }
  return submit(c10d::OpType::REDUCE_SCATTER, outputs,
                [this, output, parts, from = std::move(from), to = bytes_of(output), reduction] {
                  exchange_.reduce_scatter(from, to, reduction);
                });
}

ShmBackend::Work ShmBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                  const c10d::ReduceScatterOptions& options) {
  if (output.scalar_type() != input.scalar_type()) refuse("an output of another type");
  const Reduction reduction = reduction_of(output, options.reduceOp);
  const Bytes to = bytes_of(output);
  return submit(c10d::OpType::_REDUCE_SCATTER_BASE, {output},
                [this, output, input, to, reduction,
                 from = equal_parts(const_bytes_of(input), size_, to.size())] {
                  exchange_.reduce_scatter(from, to, reduction);
                });
}

ShmBackend::Work ShmBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                           std::vector<std::int64_t>& output_rows,
                                           std::vector<std::int64_t>& input_rows,
                                           const c10d::AllToAllOptions& /*options*/) {
  if (output.scalar_type() != input.scalar_type()) refuse("an output of another type");
  return submit(
      c10d::OpType::ALLTOALL_BASE, {output},
      [this, output, input, from = row_parts(input, const_bytes_of(input), input_rows, size_),
       to = row_parts(output, bytes_of(output), output_rows, size_)] {
        exchange_.all_to_all(from, to);
      });
}

ShmBackend::Work ShmBackend::barrier(const c10d::BarrierOptions& /*options*/) {
  return submit(c10d::OpType::BARRIER, {}, [this] { exchange_.barrier(); });
}

}  // namespace scaletrain::dist
