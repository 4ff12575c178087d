// Nodes of a test, all in this process, and checkpoints that are written to their memory.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lib/core/descriptor.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/replica/finish.h"
#include "lib/replica/peer.h"
#include "lib/replica/sending_disk.h"
#include "lib/replica/server.h"
#include "tests/format/checkpoint_support.h"

namespace scaletrain::test {

inline const std::string kSecret = "the secret of the job in this test";
inline constexpr std::int64_t kMuch = 1 << 30;
inline constexpr replica::Patience kLittlePatience{.connect = std::chrono::milliseconds(2000),
                                                   .answer = std::chrono::milliseconds(2000)};

struct Node {
  explicit Node(std::int64_t most_bytes = kMuch) : shelf(most_bytes), server(shelf, kSecret) {}

  replica::Address address() const {
    return {.hosts = {"127.0.0.1"}, .port = server.port(), .secret = kSecret};
  }
  replica::Peer peer() const { return {address(), never, kLittlePatience}; }
  // "5 6*" of saves of these steps, of which the second is whole.
  std::string steps() const {
    std::string text;
    for (const replica::HeldSave& save : shelf.list()) {
      text += (text.empty() ? "" : " ") + std::to_string(save.step) +
              (save.manifest.empty() ? "" : "*");
    }
    return text;
  }

  std::atomic<bool> never = false;
  replica::Shelf shelf;
  replica::Server server;
};

// A file in memory with the secret, as a launcher hands it to its workers.
inline int secret_fd() {
  static const core::Descriptor file = core::make_memory_file("secret", kSecret);
  return file.get();
}

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

inline std::vector<replica::Address> addresses_of(const std::vector<const Node*>& nodes) {
  std::vector<replica::Address> addresses;
  for (const Node* const node : nodes) addresses.push_back(node->address());
  return addresses;
}

inline replica::Replicated finish_on(const std::vector<const Node*>& nodes, const std::string& save,
                                     const std::filesystem::path& checkpoint) {
  std::vector<replica::Peer> peers;
  peers.reserve(nodes.size());
  for (const Node* const node : nodes) peers.push_back(node->peer());
  return replica::finish_save(peers, save, format::read_manifest(checkpoint));
}

inline std::filesystem::path publish_on(core::Disk& disk, const std::filesystem::path& run,
                                        std::int64_t step) {
  return format::publish_checkpoint(
      disk, run / "checkpoints", {.program = "test", .step = step}, 1000,
      [&](const std::filesystem::path& folder) { return Sensible(step).write(disk, folder); });
}

// A file of a node's memory that loses a byte.
struct Damage {
  const Node* node;
  std::string file;
};

// A checkpoint of `step` in `run` and, whole but for `damages`, in the memory of `nodes`.
inline std::filesystem::path keep(const std::filesystem::path& run, std::int64_t step,
                                  const std::vector<const Node*>& nodes,
                                  const std::vector<Damage>& damages = {}) {
  replica::SendingDisk disk(core::system_disk(), addresses_of(nodes), kLittlePatience);
  std::filesystem::path checkpoint = publish_on(disk, run, step);
  for (const Damage& damage : damages) {
    std::string bytes = read_bytes(checkpoint / damage.file);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    replica::Peer peer = damage.node->peer();
    peer.begin_file(disk.save(), step, damage.file);
    peer.send(bytes_of(bytes));
    peer.end_file();
  }
  finish_on(nodes, disk.save(), checkpoint);
  return checkpoint;
}

}  // namespace scaletrain::test
