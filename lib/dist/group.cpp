#include "lib/dist/group.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <gloo/common/error.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "lib/core/call_every.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/process/shared_device.h"
#include "lib/core/process/time_ledger.h"
#include "lib/dist/collective_fault.h"
#include "lib/dist/collective_watch.h"
#include "lib/dist/cuda_library.h"
#include "lib/dist/device.h"
#include "lib/dist/gloo_device.h"
#include "lib/dist/lost_peer.h"
#include "lib/dist/shm/backend.h"
#include "lib/dist/shm/meeting.h"
#include "lib/dist/store.h"
#include "lib/dist/store_board.h"
#include "lib/dist/watched.h"

namespace scaletrain::dist {
namespace {

using c10d::ProcessGroup;

constexpr std::chrono::milliseconds kLookEvery{50};

using GlooDevices = std::vector<std::shared_ptr<gloo::transport::Device>>;

bool uses_nccl(at::Device device) { return device.is_cuda() && !core::shares_device(); }

c10::intrusive_ptr<c10d::Backend> make_gloo(c10::intrusive_ptr<c10d::Store> store, int rank,
                                            int world_size, const GlooDevices& devices,
                                            std::chrono::milliseconds timeout,
                                            std::shared_ptr<CollectiveListener> listener) {
  auto options = c10d::ProcessGroupGloo::Options::create(timeout);
  options->devices = devices;
  return c10::make_intrusive<Watched<c10d::ProcessGroupGloo>>(std::move(listener), std::move(store),
                                                              rank, world_size, std::move(options));
}

// Returns the Gloo devices that a group's backend has open.
GlooDevices gloo_devices(ProcessGroup& group, at::Device device) {
  const auto backend = group.getBackend(device.type());
  return static_cast<c10d::ProcessGroupGloo&>(*backend).getOptions()->devices;
}

// Throws if the recipe requires shared memory; otherwise the job continues without it.
void report_no_memory(const ShmMeeting& meeting, CpuExchange asked, int rank) {
  if (asked == CpuExchange::kShm) {
    throw core::UsageError(
        "/dist/cpu",
        fmt::format("\"shm\" needs memory that all ranks share: {}",
                    meeting.one_host ? meeting.why_not : "they are not on one host"),
        R"(use "auto" or "gloo")");
  }
  if (meeting.one_host && rank == 0) {
    core::warn(
        "ranks of one host communicate over the network, because they have no shared memory: {}",
        meeting.why_not);
  }
}

// A process whose thread does not come back from a wait has no other way.
void leave(const core::WorkerEnv& env, const core::Beat& beat, const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const core::Error& error) {
    const int status = static_cast<int>(error.exit_code());
    core::log_line(error.what());
    core::write_error_file(env, error.what(), status, beat.step() - 1);
    std::fflush(nullptr);
    ::_exit(status);
  }
}

// Runs `body`, which only communicates with peers, so that any exception means that this failed.
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

std::chrono::milliseconds patience_for_peers(const core::WorkerEnv& env) {
  // Nobody else would see a hang.
  constexpr std::chrono::minutes kUnwatched{15};
  // Practically no timeout, but it fits into c10d's int of milliseconds.
  constexpr std::chrono::hours kNone{24 * 24};
  if (env.beat_fd) return kNone;
  return kUnwatched;
}

class Pending::Impl {
 public:
  Impl(int rank, const char* name, core::Beat beat, std::shared_ptr<CollectiveWatch> watch,
       c10::intrusive_ptr<c10d::Work> work)
      : rank_(rank),
        name_(name),
        beat_(std::move(beat)),
        watch_(std::move(watch)),
        work_(std::move(work)) {}

  void wait() {
    const core::TimeScope time(core::TimeRow::kCommunication);
    try {
      talk(rank_, name_.c_str(), [&] { work_->wait(); });
    } catch (const core::StoppedError&) {
      watch_->check();  // after an abort, the watch knows why
      throw;
    }
    watch_->settle(*work_);
    beat_.leave_collective();
  }

  bool is_over() const { return work_->isCompleted(); }

 private:
  int rank_;
  std::string name_;
  core::Beat beat_;
  std::shared_ptr<CollectiveWatch> watch_;
  c10::intrusive_ptr<c10d::Work> work_;
};

void Pending::wait() {
  if (impl_) impl_->wait();
}

bool Pending::is_over() const { return !impl_ || impl_->is_over(); }

Group::Group(const core::WorkerEnv& env, at::Device device, std::chrono::milliseconds timeout,
             core::Beat beat, std::vector<Claim> claims, CpuExchange cpu)
    : rank_(env.rank),
      world_size_(env.world_size),
      job_rank_(env.rank),
      device_(device),
      timeout_(timeout),
      beat_(std::move(beat)),
      cpu_(cpu) {
  if (world_size_ == 1) return;
  store_ = open_store(env, timeout);
  claims.push_back({.field = "the kind of device",
                    .value = c10::DeviceTypeName(device.type(), /*lower_case=*/true),
                    .code = core::ExitCode::kUsage,
                    .remedy = R"(ask for one kind: "device": "cpu" or "cuda")"});
  agree("joining", claims);
  watch_ = std::make_shared<CollectiveWatch>(
      CollectiveWatch::Options{
          .rank = rank_,
          .limit = uses_nccl(device) ? timeout : std::chrono::milliseconds(0),
          .on_host = !uses_nccl(device),
          .leave = [env, heard = beat_](const auto& failure) { leave(env, heard, failure); },
          .on_enter = read_collective_fault(rank_, beat_)},
      beat_);
  watching_ = core::call_every(kLookEvery, [watch = watch_] { watch->look(core::now()); });
  connect("connect", [&] { return GlooDevices{open_gloo_device(env)}; });
  process_group_->setGroupDesc("world");
  talk(rank_, "connect", [&] { await_connected(*store_, env); });
}

Group::Group(const Group& parent, const std::vector<int>& ranks, const std::string& name)
    : rank_(static_cast<int>(std::find(ranks.begin(), ranks.end(), parent.rank_) - ranks.begin())),
      world_size_(static_cast<int>(ranks.size())),
      job_rank_(parent.job_rank_),
      device_(parent.device_),
      timeout_(parent.timeout_),
      beat_(parent.beat_),
      cpu_(parent.exchange_ == "shm" ? CpuExchange::kShm : parent.cpu_),
      fake_(parent.fake_),
      watch_(parent.watch_) {
  if (world_size_ == 1) return;
  if (fake_) {
    connect_fake(ranks, name);
    return;
  }
  // Separate keys: Gloo groups that share keys wait for each other.
  store_ = c10::make_intrusive<c10d::PrefixStore>(name, parent.store_);
  // The parent's devices, so that no further thread listens.
  connect(name.c_str(), [&] { return gloo_devices(*parent.process_group_, device_); });
}

Group::~Group() {
  if (watch_) watch_->remove_abort(this);  // the callback holds the group
}

void Group::connect(const char* name, const std::function<GlooDevices()>& open_devices) {
  watch_->begin("connect", name);
  talk(job_rank_, name, [&] {
    process_group_ = c10::make_intrusive<ProcessGroup>(
        c10::make_intrusive<c10d::PrefixStore>("group", store_), rank_, world_size_);
    const c10::intrusive_ptr<c10d::Backend> backend = make_backend(open_devices);
    const auto kind = exchange_ == "nccl"   ? ProcessGroup::BackendType::NCCL
                      : exchange_ == "gloo" ? ProcessGroup::BackendType::GLOO
                                            : ProcessGroup::BackendType::CUSTOM;
    process_group_->setDefaultBackend(kind);
    process_group_->setBackend(device_.type(), kind, backend);
    process_group_->setGroupDesc(name);
  });
  watch_->end();
  watch_->add_abort(this, [group = process_group_] { group->abort(); });
}

c10::intrusive_ptr<c10d::Backend> Group::make_backend(
    const std::function<GlooDevices()>& open_devices) {
  const c10::intrusive_ptr<c10d::Store> store = process_group_->getStore();
  if (uses_nccl(device_)) {
    exchange_ = "nccl";
    return cuda_library().make_nccl(store, rank_, world_size_, device_.index(), timeout_, watch_);
  }
  if (device_.is_cpu() && cpu_ != CpuExchange::kGloo) {
    ShmMeeting meeting = meet_in_memory(*store, rank_, world_size_);
    if (meeting.arena) {
      exchange_ = "shm";
      return c10::make_intrusive<Watched<ShmBackend>>(watch_, std::move(meeting.arena), timeout_);
    }
    report_no_memory(meeting, cpu_, rank_);
  }
  exchange_ = "gloo";
  return make_gloo(store, rank_, world_size_, open_devices(), timeout_, watch_);
}

namespace {

// Runs `body`, which starts a collective of the process group.
template <class Body>
Pending ask(int rank, core::Beat& beat, const std::shared_ptr<CollectiveWatch>& watch,
            const char* name, const Body& body) {
  beat.name_next(name);
  return Pending(std::make_shared<Pending::Impl>(rank, name, beat, watch, talk(rank, name, body)));
}

Pending all_reduce(ProcessGroup* group, int rank, core::Beat& beat,
                   const std::shared_ptr<CollectiveWatch>& watch, at::Tensor tensor,
                   const char* name, c10d::ReduceOp::RedOpType operation) {
  if (group == nullptr) return Pending();
  c10d::AllreduceOptions options;
  options.reduceOp = operation;
  std::vector<at::Tensor> tensors{std::move(tensor)};
  return ask(rank, beat, watch, name, [&] { return group->allreduce(tensors, options); });
}

}  // namespace

Pending Group::all_reduce_sum(at::Tensor tensor, const char* name) {
  return all_reduce(process_group_.get(), job_rank_, beat_, watch_, std::move(tensor), name,
                    c10d::ReduceOp::RedOpType::SUM);
}

Pending Group::all_reduce_max(at::Tensor tensor, const char* name) {
  return all_reduce(process_group_.get(), job_rank_, beat_, watch_, std::move(tensor), name,
                    c10d::ReduceOp::RedOpType::MAX);
}

Pending Group::broadcast(at::Tensor tensor, int root, const char* name) {
  if (!process_group_) return Pending();
  const c10d::BroadcastOptions options{.rootRank = root};
  std::vector<at::Tensor> tensors{std::move(tensor)};
  return ask(job_rank_, beat_, watch_, name,
             [&] { return process_group_->broadcast(tensors, options); });
}

Pending Group::all_gather(at::Tensor whole, at::Tensor part, const char* name) {
  if (!process_group_) {
    if (!whole.is_alias_of(part)) whole.copy_(part);
    return Pending();
  }
  return ask(job_rank_, beat_, watch_, name,
             [&] { return process_group_->_allgather_base(whole, part); });
}

Pending Group::reduce_scatter_sum(at::Tensor part, at::Tensor whole, const char* name) {
  if (!process_group_) {
    part.copy_(whole);
    return Pending();
  }
  return ask(job_rank_, beat_, watch_, name,
             [&] { return process_group_->_reduce_scatter_base(part, whole); });
}

// The row counts are copied, since Gloo moves out of them.
Pending Group::all_to_all(at::Tensor received, at::Tensor sent, std::vector<std::int64_t> receive,
                          std::vector<std::int64_t> send, const char* name) {
  if (!process_group_) {
    received.copy_(sent);
    return Pending();
  }
  return ask(job_rank_, beat_, watch_, name,
             [&] { return process_group_->alltoall_base(received, sent, receive, send); });
}

std::vector<at::Tensor> Group::gather(at::Tensor tensor, int root, const char* name) {
  if (!process_group_) return {std::move(tensor)};
  c10d::GatherOptions options;
  options.rootRank = root;
  std::vector<std::vector<at::Tensor>> gathered;
  if (rank_ == root) {
    gathered.emplace_back();
    for (int i = 0; i < world_size_; ++i) gathered.front().push_back(at::empty_like(tensor));
  }
  std::vector<at::Tensor> tensors{std::move(tensor)};
  ask(job_rank_, beat_, watch_, name, [&] {
    return process_group_->gather(gathered, tensors, options);
  }).wait();
  return gathered.empty() ? std::vector<at::Tensor>() : std::move(gathered.front());
}

std::string Group::broadcast_text(std::string text, int root, const char* name) {
  if (!process_group_) return text;
  at::Tensor size = at::zeros({1}, at::kLong).fill_(static_cast<std::int64_t>(text.size()));
  size = size.to(device_);
  broadcast(size, root, name).wait();
  text.resize(static_cast<std::size_t>(to_host(size).item<std::int64_t>()));
  if (text.empty()) return text;
  at::Tensor host = at::from_blob(text.data(), {static_cast<std::int64_t>(text.size())}, at::kByte);
  at::Tensor bytes = host.to(device_);
  broadcast(bytes, root, name).wait();
  host.copy_(to_host(bytes));
  return text;
}

void Group::barrier(const char* name) {
  if (!process_group_) return;
  const at::Tensor token = at::zeros({1}, at::TensorOptions(at::kFloat).device(device_));
  all_reduce_sum(token, name).wait();
  to_host(token);  // on a device wait() only orders the queues; this waits for the peers
}

at::Tensor Group::to_host(const at::Tensor& tensor) {
  at::Tensor host = tensor.cpu();
  check();
  return host;
}

void Group::check() {
  if (watch_) watch_->check();
}

void Group::agree(const char* name, const std::vector<Claim>& claims) {
  if (!store_) return;
  dist::agree(*store_, {.rank = rank_, .world_size = world_size_}, name, claims, timeout_);
}

bool Group::stop_was_heard(bool own) {
  if (!store_) return own;
  return talk(job_rank_, "stop", [&] {
    if (own) store_->set("stop", "1");
    return own || store_->check({"stop"});
  });
}

std::shared_ptr<core::Board> Group::open_board(const std::string& name) const {
  if (!store_) return nullptr;
  return talk(job_rank_, "open a board",
              [&] { return dist::open_board(*store_, name, job_rank_); });
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
