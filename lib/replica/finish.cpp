#include "lib/replica/finish.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "lib/core/error.h"
#include "lib/core/text/text.h"
#include "lib/format/checkpoint/checkpoint_folder_manifest.h"

namespace scaletrain::replica {
namespace {

constexpr int kLeastCopies = 2;  // so that each node may be lost

// Returns the newest unfinished save of that name that a node holds.
std::optional<HeldSave> held_of(Peer& node, const std::string& save) {
  for (HeldSave& one : node.list().saves) {
    if (one.name == save && one.manifest.empty()) return std::move(one);
  }
  return std::nullopt;
}

}  // namespace

Replicated finish_save(std::vector<Peer>& nodes, const std::string& save,
                       const format::Manifest& manifest) {
  std::map<std::string, int> copies;
  std::vector<Peer*> holders;
  std::string why_fewer;
  Replicated result;
  for (Peer& node : nodes) {
    std::optional<HeldSave> held;
    try {
      held = held_of(node, save);
    } catch (const core::Error& error) {  // the others may do
      why_fewer = fmt::format("; {}: {}", error.place(), error.found());
    }
    if (!held) continue;
    holders.push_back(&node);
    for (const auto& [name, entry] : manifest.files) {
      const auto file = held->files.find(name);
      if (file == held->files.end() || file->second != entry.bytes) continue;
      ++copies[name];
      result.bytes += entry.bytes;
    }
  }
  for (const auto& [name, entry] : manifest.files) {
    if (copies[name] >= kLeastCopies) continue;
    throw core::StorageError(fmt::format("the checkpoint of step {}", manifest.step),
                             fmt::format("{} is in the memory of {}, and two are needed{}", name,
                                         core::counted(copies[name], "node"), why_fewer));
  }
  const std::string text = format::render_manifest(manifest);
  for (Peer* const node : holders) node->finish(save, manifest.step, text);
  result.nodes = static_cast<int>(holders.size());
  return result;
}

}  // namespace scaletrain::replica
