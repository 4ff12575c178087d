#include "lib/replica/fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <utility>

#include "lib/core/error.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/checkpoint_folder_copy.h"
#include "lib/format/checkpoint/checkpoint_folder_manifest.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"

namespace scaletrain::replica {
namespace {

namespace fs = std::filesystem;
using Report = std::function<void(const std::string&)>;

// A save, and the nodes that hold files of it.
struct Whole {
  format::Manifest manifest;
  std::map<Peer*, HeldSave> holders;
};

std::string text_of(const core::Error& error) {
  return fmt::format("{}: {}", error.place(), error.found());
}

// Lists saves, newest first. A save is complete if one node knows it to be complete; any node may
// have its files.
std::vector<Whole> saves_of(std::vector<Peer>& nodes, std::int64_t beyond, const Report& report) {
  using Key = std::pair<std::int64_t, std::string>;                // step and name
  std::map<Key, std::map<Peer*, HeldSave>, std::greater<>> found;  // the newest first
  for (Peer& node : nodes) {
    try {
      for (HeldSave& save : node.list().saves) {
        if (save.step <= beyond) continue;
        const Key key(save.step, save.name);
        found[key][&node] = std::move(save);
      }
    } catch (const core::Error& error) {
      report(text_of(error));
    }
  }
  std::vector<Whole> saves;
  for (const auto& [key, by_node] : found) {
    for (const auto& [node, held] : by_node) {
      if (held.manifest.empty()) continue;
      try {
        saves.push_back(
            {format::parse_manifest(held.manifest, node->place() + "/manifest.json"), by_node});
        break;
      } catch (const core::CheckpointError& error) {
        report(text_of(error));
      }
    }
  }
  return saves;
}

// Fetches a file from the first node whose copy matches the manifest. Throws core::CheckpointError
// if there is none.
void fetch_file(core::Disk& disk, const Whole& save, const std::string& name, const fs::path& to,
                Fetched& fetched, const Report& report) {
  const format::FileEntry& listed = save.manifest.files.at(name);
  for (const auto& [node, held] : save.holders) {
    if (!held.files.contains(name)) continue;
    try {
      format::HashedFile file(disk, to, listed.bytes, listed.kind);
      node->get(held.name, name, [&](std::span<const std::byte> piece) { file.write(piece); });
      format::require_sum(fmt::format("{}, step {}, {}", node->place(), save.manifest.step, name),
                          file.finish(), listed);
      const bool is_known = std::ranges::find(fetched.nodes, node->place()) != fetched.nodes.end();
      if (!is_known) fetched.nodes.push_back(node->place());
      return;
    } catch (const core::CheckpointError& error) {
      report(text_of(error));
    } catch (const core::StoppedError& error) {
      report(text_of(error));
    }
  }
  throw core::CheckpointError(fmt::format("the checkpoint of step {}", save.manifest.step),
                              fmt::format("no node has a complete {} of it in memory", name));
}

Fetched fetch(core::Disk& disk, const Whole& save, const fs::path& checkpoints,
              const Report& report) {
  Fetched fetched{.checkpoint = {}, .step = save.manifest.step, .nodes = {}};
  fetched.checkpoint = format::publish_copy(disk, checkpoints, save.manifest,
                                            [&](const std::string& name, const fs::path& to) {
                                              fetch_file(disk, save, name, to, fetched, report);
                                            });
  return fetched;
}

}  // namespace

std::optional<Fetched> fetch_newest(core::Disk& disk, const std::vector<Address>& nodes,
                                    const fs::path& checkpoints, std::int64_t beyond,
                                    const Report& report, Patience patience) {
  const std::atomic<bool> gives_up = false;
  std::vector<Peer> peers;
  peers.reserve(nodes.size());
  for (const Address& node : nodes) peers.emplace_back(node, gives_up, patience);
  for (const Whole& save : saves_of(peers, beyond, report)) {
    try {
      return fetch(disk, save, checkpoints, report);
    } catch (const core::CheckpointError& error) {
      report(text_of(error));
    }
  }
  return std::nullopt;
}

}  // namespace scaletrain::replica
