#include "launcher/jobs/node_memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <utility>

#include "launcher/jobs/job_secret.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/process/host.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/recipe/recipe.h"
#include "lib/replica/address.h"
#include "lib/replica/fetch.h"
#include "lib/replica/peer.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

// Returns the memory available to programs without swapping; 0 if the system does not report it.
std::int64_t available_bytes() {
  constexpr std::int64_t kKibibyte = 1024;
  std::ifstream info("/proc/meminfo");
  for (std::string name; info >> name; info.ignore(kKibibyte, '\n')) {
    std::int64_t kibibytes = 0;
    if (name == "MemAvailable:" && info >> kibibytes) return kibibytes * kKibibyte;
  }
  return 0;
}

std::vector<replica::Address> addresses_of(const std::vector<std::string>& texts,
                                           const std::string& secret) {
  std::vector<replica::Address> addresses;
  for (const std::string& text : texts) {
    for (replica::Address& one : replica::parse_addresses(text, secret)) {
      addresses.push_back(std::move(one));
    }
  }
  return addresses;
}

std::string address_text(std::vector<std::string> hosts, int port) {
  if (hosts.empty()) hosts.emplace_back("127.0.0.1");
  return replica::to_text(replica::Address{.hosts = std::move(hosts), .port = port, .secret = ""});
}

}  // namespace

NodeMemory::NodeMemory(const std::vector<std::string>& addresses, std::int64_t more,
                       const std::string& secret)
    : more_(more),
      secret_(secret),
      secret_file_(core::make_memory_file("scaletrain-secret", secret)),
      shelf_(available_bytes() / 4 * 3),
      server_(shelf_, secret, addresses, [this] { return reported_step(); }),
      address_(address_text(addresses, server_.port())) {}

std::string NodeMemory::go_on(std::int64_t step, const std::vector<std::string>& all, int node) {
  shelf_.forget_beyond(step);
  {
    const std::lock_guard lock(mutex_);
    from_step_ = step;
    rank_0_.reset();
    leader_ = node == 0 || all.empty() ? "" : all.front();
  }
  const auto count = static_cast<std::int64_t>(all.size());
  if (count < 2) return "";
  std::vector<std::string> own;
  for (std::int64_t i = 0; i <= std::min(more_, count - 1); ++i) {
    own.push_back(all[static_cast<std::size_t>((node + i) % count)]);
  }
  return fmt::format("{}", fmt::join(own, " "));
}

void NodeMemory::follow_rank_0(int beat_fd) {
  auto reader = std::make_unique<core::BeatReader>(beat_fd);
  const std::lock_guard lock(mutex_);
  rank_0_ = std::move(reader);
}

// Node 0 reads the heartbeats of rank 0, the others ask node 0.
std::int64_t NodeMemory::reported_step() const {
  constexpr replica::Patience kPatience{.connect = std::chrono::milliseconds(2000),
                                        .answer = std::chrono::milliseconds(5000)};
  std::string leader;
  {
    const std::lock_guard lock(mutex_);
    if (leader_.empty()) {
      return rank_0_ ? std::max(from_step_, rank_0_->state().step) : from_step_;
    }
    leader = leader_;
  }
  const std::vector<replica::Address> addresses = replica::parse_addresses(leader, secret_);
  if (addresses.empty()) throw core::StoppedError("node 0", "keeps no checkpoints in memory");
  return replica::Peer(addresses.front(), ends_, kPatience).reported_step();
}

std::unique_ptr<NodeMemory> make_node_memory(const recipe::Recipe& recipe,
                                             const Placement& placement,
                                             const std::vector<std::string>& addresses) {
  if (!recipe.checkpoint.replicate) return nullptr;
  const std::string secret = job_secret(recipe.output);
  if (secret.empty()) return nullptr;
  const bool is_local = core::is_loopback(placement.master_addr);
  return std::make_unique<NodeMemory>(is_local ? std::vector<std::string>() : addresses,
                                      recipe.checkpoint.replicate->nodes, secret);
}

void check_replicate(const recipe::Recipe& recipe, const Placement& placement) {
  if (!recipe.checkpoint.replicate) return;
  if (placement.task) {
    throw core::RecipeError(
        "/checkpoint/replicate",
        "each task of this step has a launcher of its own, and the next one may be on the same "
        "node",
        "start one launcher on each node: srun --ntasks-per-node=1 scaletrain launch");
  }
  const std::int64_t others = placement.nnodes - 1;
  const std::int64_t asked = recipe.checkpoint.replicate->nodes;
  if (others >= asked) return;
  throw core::RecipeError(
      "/checkpoint/replicate",
      others == 0
          ? "the job has one node, so there is no memory of another node"
          : fmt::format("asks for the memory of {} other nodes, and the job has {}", asked, others),
      others == 0 ? "start it on several (--nnodes), or: --set checkpoint.replicate=null"
                  : "start it on more (--nnodes), or ask for fewer");
}

void warn_of_memory(const std::vector<std::string>& all, bool one_host) {
  if (all.size() < 2) {
    core::warn(
        "/checkpoint/replicate: the job continues on one node, so its checkpoints are not in the "
        "memory of another node");
  } else if (one_host) {
    core::warn(
        "/checkpoint/replicate: all launchers of the job are on one host: if it is lost, all "
        "copies in memory are lost");
  }
}

std::optional<fs::path> fetch_from_memory(const recipe::Recipe& recipe,
                                          const std::vector<std::string>& replicas,
                                          const NodeMemory* memory, std::int64_t beyond) {
  if (memory == nullptr) return std::nullopt;
  const std::optional<replica::Fetched> fetched =
      replica::fetch_newest(core::system_disk(), addresses_of(replicas, memory->secret()),
                            fs::path(recipe.output) / "checkpoints", beyond,
                            [](const std::string& text) { core::warn("{}", text); });
  if (!fetched) return std::nullopt;
  core::log("{}: {}, so {} was copied from {}", recipe.output,
            beyond < 0 ? "it has no whole checkpoint"
                       : fmt::format("its newest checkpoint is of step {}", beyond),
            format::checkpoint_name(fetched->step), fmt::join(fetched->nodes, " and "));
  return fetched->checkpoint;
}

}  // namespace scaletrain::launcher
