#include "lib/dist/store.h"

#include <c10/util/Logging.h>
#include <fmt/format.h>

#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "lib/core/error.h"
#include "lib/dist/foreign_text.h"
#include "lib/dist/lost_peer.h"
#include "lib/dist/numeric_names.h"

namespace scaletrain::dist {
namespace {

std::string place(const core::WorkerEnv& env) { return fmt::format("rank {}", env.rank); }

double seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

// c10d logs every lost connection with a C++ backtrace. The relevant part becomes an error of
// scaletrain; a user who wants all of it sets TORCH_CPP_LOG_LEVEL.
void quiet_c10d() {
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = c10::GLOG_FATAL;
}

std::string connected_key(int rank) { return fmt::format("connected/{}", rank); }

}  // namespace

bool hosts_store(const core::WorkerEnv& env) { return env.rank == 0 && !env.use_agent_store; }

c10::intrusive_ptr<c10d::Store> open_store(const core::WorkerEnv& env,
                                           std::chrono::milliseconds timeout) {
  use_numeric_names();
  quiet_c10d();
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(env.master_port);
  options.isServer = hosts_store(env);
  options.waitWorkers = false;  // agree() names the missing ranks, which the store does not
  options.timeout = timeout;
  if (options.isServer) options.masterListenFd = env.store_fd;
  try {
    auto store = c10::make_intrusive<c10d::TCPStore>(env.master_addr, options);
    // A launcher's store may outlive an attempt; keys of the last one must not be seen.
    return c10::make_intrusive<c10d::PrefixStore>(
        fmt::format("scaletrain/{}/{}", env.run_id, env.restart_count), std::move(store));
  } catch (const std::exception& error) {
    throw_thread_refusal(place(env), error);
    const std::string cause = foreign_text(error);
    if (options.isServer) {
      throw core::UsageError(
          place(env), fmt::format("cannot host the store on port {} ({})", env.master_port, cause),
          "choose a free port with --master-port");
    }
    throw core::StoppedError(
        place(env),
        fmt::format("no answer from the store at {}:{} within {:g} s ({})", env.master_addr,
                    env.master_port, seconds(timeout), cause),
        "check that the first node is up and can be reached at --master-addr and --master-port");
  }
}

void await_connected(c10d::Store& store, const core::WorkerEnv& env) {
  constexpr std::chrono::seconds kLimit{5};
  if (env.use_agent_store) return;  // the launcher's store outlives every rank
  if (!hosts_store(env)) {
    store.set(connected_key(env.rank), "1");
    return;
  }
  std::vector<std::string> keys;
  for (int rank = 1; rank < env.world_size; ++rank) keys.push_back(connected_key(rank));
  try {
    store.wait(keys, kLimit);
  } catch (const c10::DistStoreError&) {  // a rank was lost: the next collective reports it
  }
}

}  // namespace scaletrain::dist
