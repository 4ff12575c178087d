// c10d backend over a FakeNetwork: other ranks send zeros at the simulated time, and a sum is this
// rank's own contribution.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

#include "lib/dist/fake/network.h"

namespace scaletrain::dist {

class FakeBackend : public c10d::Backend {
 public:
  // Creates a group of these ranks of the job; the network's own rank is at `place` among them.
  FakeBackend(std::shared_ptr<FakeNetwork> network, std::vector<int> ranks, int place);
  ~FakeBackend() override;
  FakeBackend(const FakeBackend&) = delete;
  FakeBackend& operator=(const FakeBackend&) = delete;

  const std::string getBackendName() const override { return "fake"; }

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
  Work alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_rows,
                     std::vector<std::int64_t>& input_rows,
                     const c10d::AllToAllOptions& options) override;
  void abort() override { shutdown(); }
  void shutdown() override;

  class FakeWork;

 private:
  Work submit(FakeKind kind, c10d::OpType type, std::size_t bytes, Tensors outputs, int root = -1);
  void serve();

  const std::shared_ptr<FakeNetwork> network_;
  const std::vector<int> ranks_;
  core::SteadyTime free_{};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<c10::intrusive_ptr<FakeWork>> under_way_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace scaletrain::dist
