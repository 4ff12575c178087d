// c10d backend over shared memory of one host: a thread runs the collectives in the order of the
// calls, while the caller computes.
//
// Tensors are dense and on the CPU. Results are written to the given tensors, which are also the
// value of a work's future.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

#include "lib/dist/shm/exchange.h"

namespace scaletrain::dist {

class ShmBackend : public c10d::Backend {
 public:
  ShmBackend(std::unique_ptr<ShmArena> arena, std::chrono::milliseconds timeout);
  ~ShmBackend() override;
  ShmBackend(const ShmBackend&) = delete;
  ShmBackend& operator=(const ShmBackend&) = delete;

  const std::string getBackendName() const override { return "shm"; }

  using Work = c10::intrusive_ptr<c10d::Work>;
  using Tensors = std::vector<at::Tensor>;
  Work allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  Work broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  Work gather(std::vector<Tensors>& gathered, Tensors& tensors,
              const c10d::GatherOptions& options) override;
  Work allgather(std::vector<Tensors>& gathered, Tensors& tensors,
                 const c10d::AllgatherOptions& options) override;
  Work _allgather_base(at::Tensor& gathered, at::Tensor& tensor,
                       const c10d::AllgatherOptions& options) override;
  Work reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                      const c10d::ReduceScatterOptions& options) override;
  Work _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                            const c10d::ReduceScatterOptions& options) override;
  // Sizes are in rows; without sizes each rank sends and receives the same number.
  Work alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_rows,
                     std::vector<std::int64_t>& input_rows,
                     const c10d::AllToAllOptions& options) override;
  Work barrier(const c10d::BarrierOptions& options) override;

  // Ends running and future collectives; abort() does so for the other ranks too.
  void abort() override;
  void shutdown() override;

 private:
  struct Task {
    std::function<void()> body;  // owns the tensors it reads and writes
    std::function<void(const std::exception_ptr& failure)> end;
  };
  Work submit(c10d::OpType type, Tensors outputs, std::function<void()> body);
  void serve();

  ShmExchange exchange_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool ends_ = false;
  std::mutex joining_;
  std::thread thread_;
};

}  // namespace scaletrain::dist
