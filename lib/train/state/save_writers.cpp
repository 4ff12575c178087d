#include "lib/train/state/save_writers.h"

#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include "lib/core/disk/disk.h"
#include "lib/core/error.h"
#include "lib/train/run/state_shards.h"

namespace scaletrain::train {
namespace {

constexpr std::int64_t kLeastBytes = 256 << 20;  // least bytes for many writers with "auto"

// Returns a token that no other run has.
std::string new_token() {
  return fmt::format("{}.{}", std::chrono::system_clock::now().time_since_epoch().count(),
                     ::getpid());
}

// Probe file that rank 0 makes in the run's folder and the other ranks look for.
class Probe {
 public:
  Probe(const Run& run, const std::string& token)
      : path_(std::filesystem::path(run.recipe.output) / (".seen." + token)), token_(token) {}

  void make() const {
    core::Disk& disk = core::system_disk();
    disk.make_folders(path_.parent_path());
    disk.create(path_)->write(std::as_bytes(std::span(token_)));
  }
  bool is_seen() const {
    std::ifstream file(path_, std::ios::binary);
    const std::string found(std::istreambuf_iterator<char>(file), {});
    return found == token_;
  }
  void remove() const { core::system_disk().remove_all(path_); }

 private:
  std::filesystem::path path_;
  std::string token_;
};

// The highest rank that does not see rank 0's folder of the run; -1: all do.
std::int64_t rank_that_sees_nothing(Run& run, const std::string& token) {
  dist::Group& group = *run.group;
  const Probe probe(run, token);
  if (group.rank() == 0) probe.make();
  group.barrier("the run's folder is there");
  const std::int64_t own = probe.is_seen() ? -1 : group.rank();
  at::Tensor highest = at::full({1}, own, at::TensorOptions(at::kLong).device(group.device()));
  group.all_reduce_max(highest, "who sees the run's folder").wait();
  if (group.rank() == 0) probe.remove();
  return group.to_host(highest).item<std::int64_t>();
}

}  // namespace

std::shared_ptr<checkpoint::Writers> make_writers(Run& run) {
  const std::string& asked = run.recipe.checkpoint.writers;
  dist::Group& group = *run.group;
  if (group.world_size() == 1 || asked == "rank_0") return nullptr;
  const local_sgd::ReplicaTraits& replicas = run.replicas->traits();
  if (!replicas.leads) return nullptr;
  const bool is_needed = is_sharded(run);
  if (replicas.steps_alone && !is_needed) return nullptr;  // optimizer states differ
  const bool is_asked = asked == "all" || is_needed;
  if (!is_asked && bytes_of_state(run) < kLeastBytes) return nullptr;
  const std::string token =
      group.broadcast_text(group.rank() == 0 ? new_token() : "", 0, "the run's folder");
  const std::int64_t blind = rank_that_sees_nothing(run, token);
  if (blind >= 0 && is_needed) {
    throw core::RecipeError(
        "/output",
        fmt::format("rank {} does not see rank 0's folder {}, into which each rank writes its part "
                    "of the model",
                    blind, run.recipe.output),
        "use a folder on a file system that all nodes share");
  }
  if (blind >= 0 && is_asked) {
    throw core::RecipeError(
        "/checkpoint/writers",
        fmt::format("rank {} does not see rank 0's folder {}", blind, run.recipe.output),
        R"(use "auto" or "rank_0", or an /output on a file system that all nodes share)");
  }
  if (blind >= 0) return nullptr;
  return std::make_shared<checkpoint::Writers>(group.open_board("saves/" + token), group.rank(),
                                               group.world_size());
}

}  // namespace scaletrain::train
