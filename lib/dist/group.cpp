#include "lib/dist/group.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <gloo/common/error.h>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "lib/core/error.h"
#include "lib/dist/beating.h"
#include "lib/dist/cuda_library.h"
#include "lib/dist/foreign_text.h"
#include "lib/dist/local_address.h"
#include "lib/dist/store.h"

namespace scaletrain::dist {
namespace {

using c10d::ProcessGroup;

// From so many ranks on, connections are made when they are first used: a full mesh is cheaper to
// make at once for few ranks, and grows with the square of their number.
constexpr int kLazyConnectionRanks = 16;

c10::intrusive_ptr<c10d::Backend> make_gloo(c10::intrusive_ptr<c10d::Store> store,
                                            const core::WorkerEnv& env,
                                            std::chrono::milliseconds timeout,
                                            const core::Beat& beat) {
  auto options = c10d::ProcessGroupGloo::Options::create(timeout);
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(
      local_address(env), env.world_size >= kLazyConnectionRanks));
  return c10::make_intrusive<Beating<c10d::ProcessGroupGloo>>(beat, std::move(store), env.rank,
                                                              env.world_size, std::move(options));
}

[[noreturn]] void throw_lost(int rank, const std::string& what, const std::exception& cause) {
  throw core::StoppedError(
      fmt::format("rank {}", rank),
      fmt::format("{} not completed: a peer was lost or time was up ({})", what,
                  foreign_text(cause)),
      "the rank that failed first tells why in its own log; resume from the newest checkpoint");
}

// Runs `body`, which only talks to the peers: whatever it throws means that this failed.
template <class Body>
auto talk(int rank, const char* name, const Body& body) {
  try {
    return body();
  } catch (const core::Error&) {
    throw;
  } catch (const std::exception& error) {
    throw_lost(rank, fmt::format("collective \"{}\" was", name), error);
  }
}

}  // namespace

class Pending::Impl {
 public:
  Impl(int rank, const char* name, core::Beat beat, c10::intrusive_ptr<c10d::Work> work)
      : rank_(rank), name_(name), beat_(std::move(beat)), work_(std::move(work)) {}

  void wait() {
    talk(rank_, name_.c_str(), [&] { work_->wait(); });
    beat_.leave_collective();
  }

 private:
  int rank_;
  std::string name_;
  core::Beat beat_;
  c10::intrusive_ptr<c10d::Work> work_;
};

void Pending::wait() {
  if (impl_) impl_->wait();
}

Group::Group(const core::WorkerEnv& env, at::Device device, std::chrono::milliseconds timeout,
             core::Beat beat)
    : rank_(env.rank), world_size_(env.world_size), device_(device), beat_(std::move(beat)) {
  if (world_size_ == 1) return;
  store_ = open_store(env, timeout);
  await_all_ranks(*store_, env, timeout);
  talk(rank_, "connect", [&] {
    auto group_store = c10::make_intrusive<c10d::PrefixStore>("group", store_);
    process_group_ = c10::make_intrusive<ProcessGroup>(group_store, rank_, world_size_);
    const bool cuda = device.is_cuda();
    const auto kind = cuda ? ProcessGroup::BackendType::NCCL : ProcessGroup::BackendType::GLOO;
    process_group_->setDefaultBackend(kind);
    process_group_->setBackend(device.type(), kind,
                               cuda ? cuda_library().make_nccl(group_store, rank_, world_size_,
                                                               device.index(), timeout, beat_)
                                    : make_gloo(group_store, env, timeout, beat_));
  });
}

Group::~Group() = default;

namespace {

Pending all_reduce(ProcessGroup* group, int rank, core::Beat& beat, at::Tensor tensor,
                   const char* name, c10d::ReduceOp::RedOpType operation) {
  if (group == nullptr) return Pending();
  beat.name_next(name);
  c10d::AllreduceOptions options;
  options.reduceOp = operation;
  std::vector<at::Tensor> tensors{std::move(tensor)};
  return Pending(std::make_shared<Pending::Impl>(
      rank, name, beat, talk(rank, name, [&] { return group->allreduce(tensors, options); })));
}

}  // namespace

Pending Group::all_reduce_sum(at::Tensor tensor, const char* name) {
  return all_reduce(process_group_.get(), rank_, beat_, std::move(tensor), name,
                    c10d::ReduceOp::RedOpType::SUM);
}

Pending Group::all_reduce_max(at::Tensor tensor, const char* name) {
  return all_reduce(process_group_.get(), rank_, beat_, std::move(tensor), name,
                    c10d::ReduceOp::RedOpType::MAX);
}

Pending Group::broadcast(at::Tensor tensor, int root, const char* name) {
  if (!process_group_) return Pending();
  beat_.name_next(name);
  c10d::BroadcastOptions options;
  options.rootRank = root;
  std::vector<at::Tensor> tensors{std::move(tensor)};
  return Pending(std::make_shared<Pending::Impl>(
      rank_, name, beat_,
      talk(rank_, name, [&] { return process_group_->broadcast(tensors, options); })));
}

std::string Group::broadcast_text(std::string text, int root, const char* name) {
  if (!process_group_) return text;
  at::Tensor size = at::zeros({1}, at::kLong).fill_(static_cast<std::int64_t>(text.size()));
  size = size.to(device_);
  broadcast(size, root, name).wait();
  text.resize(static_cast<std::size_t>(size.item<std::int64_t>()));
  if (text.empty()) return text;
  at::Tensor host = at::from_blob(text.data(), {static_cast<std::int64_t>(text.size())}, at::kByte);
  at::Tensor bytes = host.to(device_);
  broadcast(bytes, root, name).wait();
  host.copy_(bytes);
  return text;
}

void Group::barrier(const char* name) {
  if (!process_group_) return;
  const at::Tensor token = at::zeros({1}, at::TensorOptions(at::kFloat).device(device_));
  all_reduce_sum(token, name).wait();
  token.cpu();  // on a device wait() only orders the queues; this waits for the peers
}

bool Group::stop_was_told(bool own) {
  if (!store_) return own;
  return talk(rank_, "stop", [&] {
    if (own) store_->set("stop", "1");
    return own || store_->check({"stop"});
  });
}

void rethrow_as_stopped(int rank, const char* what) {
  try {
    throw;
  } catch (const gloo::Exception& error) {
    throw_lost(rank, what, error);
  } catch (const c10::DistError& error) {
    throw_lost(rank, what, error);
  }
}

}  // namespace scaletrain::dist
