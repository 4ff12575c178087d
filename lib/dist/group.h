// The ranks of a job: c10d's store and process group, and the collectives by name.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "lib/core/beat.h"
#include "lib/core/worker_env.h"

namespace c10d {
class Store;
class ProcessGroup;
}  // namespace c10d

namespace scaletrain::dist {

// A collective under way. wait() returns when this rank may use the tensor; throws
// core::StoppedError naming the collective when a peer is lost or time is up.
class Pending {
 public:
  class Impl;
  explicit Pending(std::shared_ptr<Impl> impl = nullptr) : impl_(std::move(impl)) {}
  void wait();

 private:
  std::shared_ptr<Impl> impl_;
};

class Group {
 public:
  // Joins the store at MASTER_ADDR:MASTER_PORT (rank 0 hosts it, on env.store_fd where given,
  // unless env.use_agent_store) and builds the process group: Gloo for a CPU, NCCL for a CUDA
  // device. With one rank nothing is opened and every collective is the identity. Throws
  // core::StoppedError when not all ranks arrive within `timeout`, naming who is missing. A
  // collective has `timeout` too; each one that is entered is told to `beat`.
  Group(const core::WorkerEnv& env, at::Device device, std::chrono::milliseconds timeout,
        core::Beat beat = core::Beat());
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const { return rank_; }
  int world_size() const { return world_size_; }
  at::Device device() const { return device_; }

  // Tensors of collectives are on device() and of the same shape on all ranks.
  Pending all_reduce_sum(at::Tensor tensor, const char* name);
  Pending all_reduce_max(at::Tensor tensor, const char* name);
  Pending broadcast(at::Tensor tensor, int root, const char* name);
  // `text` of `root` on every rank.
  std::string broadcast_text(std::string text, int root, const char* name);
  void barrier(const char* name);

  // Tells the other ranks through the store that this one was asked to stop, where `own` says so,
  // and hears it from them: nobody has to wait for anybody. True where any rank has told it.
  bool stop_was_told(bool own);

  // c10d's group for the Reducer; null with one rank.
  const c10::intrusive_ptr<c10d::ProcessGroup>& process_group() const { return process_group_; }

 private:
  int rank_, world_size_;
  at::Device device_;
  core::Beat beat_;
  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::ProcessGroup> process_group_;
};

// For a catch block around what uses the group without its name, such as backward(): a lost peer or
// a time-out becomes core::StoppedError, "rank 1: the gradients were not exchanged ..." for `what`
// "the gradients were"; any other exception goes on as it is.
[[noreturn]] void rethrow_as_stopped(int rank, const char* what);

}  // namespace scaletrain::dist
