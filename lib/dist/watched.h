// Process-group backend that reports every collective, also those of c10d's Reducer, which calls
// the backend directly.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>
#include <vector>

#include "lib/core/process/trace_spans.h"

namespace scaletrain::dist {

class CollectiveListener {
 public:
  virtual ~CollectiveListener() = default;
  // A collective, "all-reduce", "broadcast" and so on, is about to start; returns its name, which
  // stays valid.
  virtual const char* enter(const char* kind) = 0;
  // Group and bytes of that collective; called after enter() while a trace is recorded.
  virtual void describe(const std::string& /*group*/, std::int64_t /*bytes*/) {}
  // It is in progress.
  virtual void started(const char* name, c10::intrusive_ptr<c10d::Work> work) = 0;
};

// Base: c10d::ProcessGroupGloo, c10d::ProcessGroupNCCL or ShmBackend; the arguments after
// `listener` are passed to its constructor.
template <class Base>
class Watched : public Base {
 public:
  template <class... Args>
  explicit Watched(std::shared_ptr<CollectiveListener> listener, Args&&... args)
      : Base(std::forward<Args>(args)...), listener_(std::move(listener)) {}

  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override {
    return listened("all-reduce", tensors, [&] { return Base::allreduce(tensors, options); });
  }
  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) override {
    return listened("broadcast", tensors, [&] { return Base::broadcast(tensors, options); });
  }
  c10::intrusive_ptr<c10d::Work> gather(std::vector<std::vector<at::Tensor>>& gathered,
                                        std::vector<at::Tensor>& tensors,
                                        const c10d::GatherOptions& options) override {
    return listened("gather", tensors, [&] { return Base::gather(gathered, tensors, options); });
  }
  c10::intrusive_ptr<c10d::Work> allgather(std::vector<std::vector<at::Tensor>>& gathered,
                                           std::vector<at::Tensor>& tensors,
                                           const c10d::AllgatherOptions& options) override {
    return listened("all-gather", tensors,
                    [&] { return Base::allgather(gathered, tensors, options); });
  }
  c10::intrusive_ptr<c10d::Work> _allgather_base(at::Tensor& gathered, at::Tensor& tensor,
                                                 const c10d::AllgatherOptions& options) override {
    return listened("all-gather", tensor,
                    [&] { return Base::_allgather_base(gathered, tensor, options); });
  }
  c10::intrusive_ptr<c10d::Work> reduce_scatter(
      std::vector<at::Tensor>& outputs, std::vector<std::vector<at::Tensor>>& inputs,
      const c10d::ReduceScatterOptions& options) override {
    return listened("reduce-scatter", outputs,
                    [&] { return Base::reduce_scatter(outputs, inputs, options); });
  }
  c10::intrusive_ptr<c10d::Work> _reduce_scatter_base(
      at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) override {
    return listened("reduce-scatter", input,
                    [&] { return Base::_reduce_scatter_base(output, input, options); });
  }
  c10::intrusive_ptr<c10d::Work> alltoall_base(at::Tensor& output, at::Tensor& input,
                                               std::vector<std::int64_t>& output_rows,
                                               std::vector<std::int64_t>& input_rows,
                                               const c10d::AllToAllOptions& options) override {
    return listened("all-to-all", input, [&] {
      return Base::alltoall_base(output, input, output_rows, input_rows, options);
    });
  }

 private:
  template <class Start>
  c10::intrusive_ptr<c10d::Work> listened(const char* kind, at::TensorList tensors,
                                          const Start& start) {
    const char* const name = listener_->enter(kind);
    if (core::TraceSpans::is_on()) {
      std::int64_t bytes = 0;
      for (const at::Tensor& tensor : tensors) bytes += static_cast<std::int64_t>(tensor.nbytes());
      listener_->describe(this->getGroupDesc(), bytes);
    }
    c10::intrusive_ptr<c10d::Work> work = start();
    listener_->started(name, work);
    return work;
  }

  std::shared_ptr<CollectiveListener> listener_;
};

}  // namespace scaletrain::dist
