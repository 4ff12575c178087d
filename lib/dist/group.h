// The ranks of a job: c10d's store and process group, and the collectives by name.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lib/core/job/board.h"
#include "lib/core/job/worker_env.h"
#include "lib/core/process/beat.h"
#include "lib/dist/agreement.h"

namespace c10d {
class Store;
class ProcessGroup;
class Backend;
}  // namespace c10d
namespace gloo::transport {
class Device;
}  // namespace gloo::transport

namespace scaletrain::dist {

class CollectiveWatch;
class FakeNetwork;

// Backend for collectives on CPU tensors: Gloo over the network, or memory that the ranks of one
// host share. kAuto: shared memory if all ranks of the group are on one host.
enum class CpuExchange { kAuto, kGloo, kShm };

// Timeout for other ranks, also in collectives. No limit if the launcher watches heartbeats: it
// detects hangs (--hang-timeout), and a rank that still sends heartbeats may take its time.
std::chrono::milliseconds patience_for_peers(const core::WorkerEnv& env);

// A running collective. wait() returns when this rank may use the tensor; on a device, when work
// queued afterwards may. It throws core::StoppedError naming the collective if a peer is lost or on
// timeout.
class Pending {
 public:
  class Impl;
  explicit Pending(std::shared_ptr<Impl> impl = nullptr) : impl_(std::move(impl)) {}
  void wait();
  // True if wait() would return or throw at once.
  bool is_over() const;

 private:
  std::shared_ptr<Impl> impl_;
};

class Group {
 public:
  // Joins the store at MASTER_ADDR:MASTER_PORT (rank 0 hosts it, on env.store_fd if given, unless
  // env.use_agent_store) and builds the process group: `cpu` for a CPU, NCCL for a CUDA device.
  // With one rank no connection is opened and every collective is the identity. `timeout` applies
  // to the start and to each collective; each collective is recorded in `beat`. Throws
  // core::StoppedError naming the missing ranks if not all arrive within `timeout`, the errors of
  // agree() for `claims` or another kind of device, and core::UsageError if `cpu` is kShm and the
  // ranks cannot share memory.
  Group(const core::WorkerEnv& env, at::Device device, std::chrono::milliseconds timeout,
        core::Beat beat = core::Beat(), std::vector<Claim> claims = {},
        CpuExchange cpu = CpuExchange::kAuto);
  // Creates a subgroup of `parent` from these ranks, this one among them, in this order. `name` is
  // used by no other group of any of them. All of them call it at once. With one rank no connection
  // is opened. The parent must outlive it. Throws core::StoppedError if not all connect within its
  // timeout.
  Group(const Group& parent, const std::vector<int>& ranks, const std::string& name);
  // Makes a simulated job of which only this rank exists (lib/dist/fake/network.h); its subgroups
  // are simulated too. Functions that need other ranks' answers, such as agree(), do not wait.
  Group(std::shared_ptr<FakeNetwork> network, at::Device device);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const { return rank_; }
  int world_size() const { return world_size_; }
  int job_rank() const { return job_rank_; }  // rank in the job
  at::Device device() const { return device_; }
  // "gloo", "shm", "nccl" or "fake"; "" with one rank.
  const std::string& exchange() const { return exchange_; }

  // Tensors of collectives are on device() and of the same shape on all ranks.
  Pending all_reduce_sum(at::Tensor tensor, const char* name);
  Pending all_reduce_max(at::Tensor tensor, const char* name);
  Pending broadcast(at::Tensor tensor, int root, const char* name);
  // Gathers `part` of each rank, in rank order, into `whole`; `part` may be this rank's slice of
  // `whole`.
  Pending all_gather(at::Tensor whole, at::Tensor part, const char* name);
  // Sums `whole` over the ranks and writes this rank's slice to `part`. With one rank `part` must
  // be that slice.
  Pending reduce_scatter_sum(at::Tensor part, at::Tensor whole, const char* name);
  // Sends `send[i]` rows of `sent` to rank i, in rank order, and receives `receive[i]` rows of rank
  // i into `received`; any count may be 0.
  Pending all_to_all(at::Tensor received, at::Tensor sent, std::vector<std::int64_t> receive,
                     std::vector<std::int64_t> send, const char* name);
  // Returns the tensors of all ranks, in rank order, on `root`; {} on the others.
  std::vector<at::Tensor> gather(at::Tensor tensor, int root, const char* name);
  // Returns the text of `root` on every rank.
  std::string broadcast_text(std::string text, int root, const char* name);
  void barrier(const char* name);

  // Compares `claims` with the other ranks' (lib/dist/agreement.h). Every rank calls it with the
  // same `name`, once for each.
  void agree(const char* name, const std::vector<Claim>& claims);
  // Returns the values of `tensor` on the host. Throws core::StoppedError if a collective failed
  // before, since values on a device are then undefined.
  at::Tensor to_host(const at::Tensor& tensor);
  void check();  // call after reading data without wait()

  // Splits this rank off as an independent job of one rank that keeps its number: every collective
  // returns its input. All ranks call it at once while no collective is running; the group must
  // have no subgroups.
  void go_alone(const char* name);
  // Splits `ranks`, this one among them, off as an independent job, renumbered from 0 in the order
  // of `ranks`. Each rank calls it with its own `ranks`; no other group of any of them may have the
  // name `name`.
  void go_with(const std::vector<int>& ranks, const std::string& name);

  // Shuts the communicator down after a barrier; no collective may follow.
  void end(const char* name);
  void shut_down();  // without a barrier, which was made before

  // Reports through the store that this rank has received a stop request, if `own`, and reads the
  // reports of other ranks without waiting. Returns true if any rank has received one.
  bool stop_was_heard(bool own);

  // Opens a key-value board of the job's ranks on a separate connection; null with one rank. `name`
  // is used by no other board.
  std::shared_ptr<core::Board> open_board(const std::string& name) const;

  // c10d's group for the Reducer; null with one rank.
  const c10::intrusive_ptr<c10d::ProcessGroup>& process_group() const { return process_group_; }

 private:
  // Connects this rank to the others of its group; `open_devices` opens Gloo's.
  using GlooDevices = std::vector<std::shared_ptr<gloo::transport::Device>>;
  void connect_fake(std::vector<int> ranks, const std::string& name);
  void connect(const char* name, const std::function<GlooDevices()>& open_devices);
  c10::intrusive_ptr<c10d::Backend> make_backend(const std::function<GlooDevices()>& open_devices);

  int rank_, world_size_;
  int job_rank_;
  at::Device device_;
  std::chrono::milliseconds timeout_;
  core::Beat beat_;
  CpuExchange cpu_ = CpuExchange::kAuto;  // requested backend
  std::string exchange_;
  std::shared_ptr<FakeNetwork> fake_;  // null: the other ranks exist
  c10::intrusive_ptr<c10d::Store> store_;
  std::shared_ptr<CollectiveWatch> watch_;  // shared by all groups of this rank; null for one rank
  c10::intrusive_ptr<c10d::ProcessGroup> process_group_;
  std::jthread watching_;
};

// For a catch block around code that uses the group without its name, such as backward(). A lost
// peer or timeout becomes core::StoppedError, "rank 1: the gradients were not exchanged ..." for
// `what` "the gradients were"; other exceptions are rethrown unchanged.
[[noreturn]] void rethrow_as_stopped(int rank, const char* what);

}  // namespace scaletrain::dist
