#include "lib/dist/fake/backend.h"

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <c10/core/GradMode.h>
#include <pthread.h>

#include <chrono>
#include <utility>

namespace scaletrain::dist {

// Completes at its simulated time; counts the threads that wait for it.
class FakeBackend::FakeWork : public c10d::Work {
 public:
  FakeWork(int rank, c10d::OpType type, std::vector<at::Tensor> outputs,
           std::shared_ptr<FakeNetwork> network, std::size_t call)
      : Work(rank, type),
        outputs_(std::move(outputs)),
        network_(std::move(network)),
        call_(call),
        done_(network_->done(call)),
        future_(c10::make_intrusive<c10::ivalue::Future>(
            c10::ListType::create(c10::TensorType::get()))) {}

  core::SteadyTime done() const { return done_; }
  void end() {
    future_->markCompleted(c10::IValue(outputs_));
    finish();
  }

  bool wait(std::chrono::milliseconds /*timeout*/) override {
    // Not how long the system takes to wake a thread.
    const std::chrono::duration<double> left = done_ - core::now();
    if (left.count() > 0) network_->add_wait(call_, left.count());
    future_->wait();
    return true;
  }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  std::vector<at::Tensor> result() override { return outputs_; }

 private:
  const std::vector<at::Tensor> outputs_;
  const std::shared_ptr<FakeNetwork> network_;
  const std::size_t call_;
  const core::SteadyTime done_;
  const c10::intrusive_ptr<c10::ivalue::Future> future_;
};

FakeBackend::FakeBackend(std::shared_ptr<FakeNetwork> network, std::vector<int> ranks, int place)
    : Backend(place, static_cast<int>(ranks.size())),
      network_(std::move(network)),
      ranks_(std::move(ranks)),
      thread_([this] { serve(); }) {}

FakeBackend::~FakeBackend() { FakeBackend::shutdown(); }

void FakeBackend::shutdown() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

// Ends each work at its time, in their order.
void FakeBackend::serve() {
  ::pthread_setname_np(::pthread_self(), "fake-exchange");
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ends_ || !under_way_.empty(); });
    if (under_way_.empty()) return;
    const c10::intrusive_ptr<FakeWork> next = std::move(under_way_.front());
    under_way_.pop_front();
    changed_.wait_until(lock, next->done(), [&] { return ends_; });
    lock.unlock();
    next->end();
    lock.lock();
  }
}

FakeBackend::Work FakeBackend::submit(FakeKind kind, c10d::OpType type, std::size_t bytes,
                                      Tensors outputs, int root) {
  const std::lock_guard lock(mutex_);
  const std::size_t call = network_->ask({.kind = kind,
                                          .ranks = ranks_,
                                          .place = rank_,
                                          .root = root,
                                          .bytes = static_cast<std::int64_t>(bytes)},
                                         free_);
  auto work = c10::make_intrusive<FakeWork>(rank_, type, std::move(outputs), network_, call);
  under_way_.push_back(work);
  changed_.notify_all();
  return work;
}

FakeBackend::Work FakeBackend::allreduce(Tensors& tensors,
                                         const c10d::AllreduceOptions& /*options*/) {
  return submit(FakeKind::kAllReduce, c10d::OpType::ALLREDUCE, tensors.at(0).nbytes(), tensors);
}

FakeBackend::Work FakeBackend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  const at::NoGradGuard no_grad;
  if (options.rootRank != rank_) tensors.at(0).zero_();
  return submit(FakeKind::kBroadcast, c10d::OpType::BROADCAST, tensors.at(0).nbytes(), tensors,
                static_cast<int>(options.rootRank));
}

FakeBackend::Work FakeBackend::gather(std::vector<Tensors>& gathered, Tensors& tensors,
                                      const c10d::GatherOptions& options) {
  const at::NoGradGuard no_grad;
  Tensors outputs;
  if (options.rootRank == rank_) outputs = gathered.at(0);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (static_cast<int>(i) == rank_) {
      outputs[i].copy_(tensors.at(0));
    } else {
      outputs[i].zero_();
    }
  }
  return submit(FakeKind::kGather, c10d::OpType::GATHER, tensors.at(0).nbytes(), outputs,
                static_cast<int>(options.rootRank));
}

FakeBackend::Work FakeBackend::allgather(std::vector<Tensors>& gathered, Tensors& tensors,
                                         const c10d::AllgatherOptions& /*options*/) {
  const at::NoGradGuard no_grad;
  const Tensors& outputs = gathered.at(0);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (static_cast<int>(i) == rank_) {
      outputs[i].copy_(tensors.at(0));
    } else {
      outputs[i].zero_();
    }
  }
  return submit(FakeKind::kAllGather, c10d::OpType::ALLGATHER,
                tensors.at(0).nbytes() * outputs.size(), outputs);
}

FakeBackend::Work FakeBackend::_allgather_base(at::Tensor& gathered, at::Tensor& tensor,
                                               const c10d::AllgatherOptions& /*options*/) {
  const at::NoGradGuard no_grad;
  const at::Tensor parts = gathered.view({size_, -1});
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_) {
      parts[rank].zero_();
    } else if (!gathered.is_alias_of(tensor)) {
      parts[rank].copy_(tensor.flatten());
    }
  }
  return submit(FakeKind::kAllGather, c10d::OpType::_ALLGATHER_BASE, gathered.nbytes(), {gathered});
}

FakeBackend::Work FakeBackend::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                              const c10d::ReduceScatterOptions& /*options*/) {
  const at::NoGradGuard no_grad;
  outputs.at(0).copy_(inputs.at(0).at(static_cast<std::size_t>(rank_)));
  return submit(FakeKind::kReduceScatter, c10d::OpType::REDUCE_SCATTER,
                outputs[0].nbytes() * ranks_.size(), outputs);
}

FakeBackend::Work FakeBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                    const c10d::ReduceScatterOptions& /*options*/) {
  const at::NoGradGuard no_grad;
  output.copy_(input.view({size_, -1})[rank_].view(output.sizes()));
  return submit(FakeKind::kReduceScatter, c10d::OpType::_REDUCE_SCATTER_BASE, input.nbytes(),
                {output});
}

FakeBackend::Work FakeBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                             std::vector<std::int64_t>& /*output_rows*/,
                                             std::vector<std::int64_t>& /*input_rows*/,
                                             const c10d::AllToAllOptions& /*options*/) {
  const at::NoGradGuard no_grad;
  if (output.sizes() == input.sizes()) {
    output.copy_(input);  // as if the others had as many for this rank as it has for them
  } else {
    output.zero_();
  }
  return submit(FakeKind::kAllToAll, c10d::OpType::ALLTOALL_BASE, input.nbytes(), {output});
}

}  // namespace scaletrain::dist
