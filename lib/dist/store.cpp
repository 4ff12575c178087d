#include "lib/dist/store.h"

#include <c10/util/Logging.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "lib/core/error.h"
#include "lib/dist/foreign_text.h"
#include "lib/dist/numeric_names.h"

namespace scaletrain::dist {
namespace {

constexpr std::size_t kMaxRanksNamed = 16;
// How much longer the others wait for rank 0's verdict than rank 0 waits for them.
constexpr std::chrono::seconds kVerdictMargin{5};

std::string place(const core::WorkerEnv& env) { return fmt::format("rank {}", env.rank); }

double seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

std::string arrival_key(int rank) { return fmt::format("arrived/{}", rank); }
std::string heard_key(int rank) { return fmt::format("heard/{}", rank); }

// c10d logs every lost connection with a C++ backtrace. What matters of it becomes an error of
// ours; a person who wants all of it sets TORCH_CPP_LOG_LEVEL.
void quiet_c10d() {
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = c10::GLOG_FATAL;
}

std::string ranks_text(const std::vector<int>& ranks) {
  const std::size_t named = std::min(ranks.size(), kMaxRanksNamed);
  std::string text = fmt::format("{}", fmt::join(std::span(ranks).first(named), ", "));
  if (named < ranks.size()) text += fmt::format(" and {} more", ranks.size() - named);
  return text;
}

// Ranks that are not there when all are or when time is up.
std::vector<int> missing_ranks(c10d::Store& store, int world_size,
                               std::chrono::milliseconds timeout) {
  std::vector<std::string> keys;
  keys.reserve(static_cast<std::size_t>(world_size));
  for (int rank = 0; rank < world_size; ++rank) keys.push_back(arrival_key(rank));
  try {
    store.wait(keys, timeout);
    return {};
  } catch (const c10::DistStoreError&) {  // time is up: see who is missing
  }
  std::vector<int> missing;
  for (int rank = 0; rank < world_size; ++rank) {
    if (!store.check({arrival_key(rank)})) missing.push_back(rank);
  }
  return missing;
}

// The store goes with rank 0, which stays until all who came know why, or seem to be gone.
void await_hearers(c10d::Store& store, int world_size, const std::vector<int>& missing) {
  std::vector<std::string> keys;
  for (int rank = 1; rank < world_size; ++rank) {
    if (std::find(missing.begin(), missing.end(), rank) == missing.end()) {
      keys.push_back(heard_key(rank));
    }
  }
  try {
    if (!keys.empty()) store.wait(keys, kVerdictMargin);
  } catch (const c10::DistStoreError&) {
  }
}

// Rank 0's part: tells everybody "" when all came, else who did not, and returns it.
std::string announce(c10d::Store& store, const core::WorkerEnv& env,
                     std::chrono::milliseconds timeout) {
  const std::vector<int> missing = missing_ranks(store, env.world_size, timeout);
  if (missing.empty()) {
    store.set("verdict", "");
    return "";
  }
  std::string verdict =
      fmt::format("{} of {} ranks did not arrive within {:g} s: {}", missing.size(), env.world_size,
                  seconds(timeout), ranks_text(missing));
  store.set("verdict", verdict);
  await_hearers(store, env.world_size, missing);
  return verdict;
}

[[noreturn]] void throw_missing(const core::WorkerEnv& env, const std::string& found) {
  throw core::StoppedError(place(env), found,
                           "look at the logs of the missing ranks, and check that every node was "
                           "started with the same --nnodes, --master-addr and --master-port");
}

}  // namespace

c10::intrusive_ptr<c10d::Store> open_store(const core::WorkerEnv& env,
                                           std::chrono::milliseconds timeout) {
  use_numeric_names();
  quiet_c10d();
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(env.master_port);
  options.isServer = env.rank == 0 && !env.use_agent_store;
  options.waitWorkers = false;  // await_all_ranks names who is missing, the store does not
  options.timeout = timeout;
  if (options.isServer) options.masterListenFd = env.store_fd;
  try {
    auto store = c10::make_intrusive<c10d::TCPStore>(env.master_addr, options);
    // A launcher's store may outlive an attempt; keys of the last one must not be seen.
    return c10::make_intrusive<c10d::PrefixStore>(
        fmt::format("scaletrain/{}/{}", env.run_id, env.restart_count), std::move(store));
  } catch (const std::exception& error) {
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

void await_all_ranks(c10d::Store& store, const core::WorkerEnv& env,
                     std::chrono::milliseconds timeout) {
  std::string missing;
  try {
    store.set(arrival_key(env.rank), "1");
    if (env.rank == 0) {
      missing = announce(store, env, timeout);
    } else {
      store.wait({"verdict"}, timeout + kVerdictMargin);
      missing = store.get_to_str("verdict");
      if (!missing.empty()) store.set(heard_key(env.rank), "1");
    }
  } catch (const std::exception& error) {
    throw_missing(env, fmt::format("rank 0 was lost during rendezvous ({})", foreign_text(error)));
  }
  if (!missing.empty()) throw_missing(env, missing);
}

}  // namespace scaletrain::dist
