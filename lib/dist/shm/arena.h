// Memory that the ranks of one host share, and what they say to each other in it.
//
// Exchanging goes in rounds, numbered from 0. In each a rank writes into a slot of its own,
// publishes the round, reads the slots of others and says that it is done with the round: then
// they may write over what it read. Each rank has `slots` slots in turn, so that it may be some
// rounds ahead. The file has no name and is gone with the last rank, however that ends.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/core/clock.h"
#include "lib/core/descriptor.h"

namespace scaletrain::dist {

struct ArenaShape {
  int ranks = 2;
  int slots = 4;                     // per rank
  std::size_t slot_bytes = 1 << 17;  // a multiple of 64
};

// Conditions that end a wait early.
struct Patience {
  core::SteadyTime deadline;
  const std::atomic<bool>* stopped = nullptr;  // set by another thread
};

class ShmArena {
 public:
  // Makes a new one for the group's ranks; this one is rank 0. Throws core::Error of kMemory.
  explicit ShmArena(const ArenaShape& shape);
  // The arena whose file another rank has open as `path`, an address() that it gave away. Throws
  // core::Error of kMemory where it cannot be opened or is another file.
  ShmArena(const std::string& address, int rank);
  ~ShmArena();
  ShmArena(const ShmArena&) = delete;
  ShmArena& operator=(const ShmArena&) = delete;

  // For the other ranks' constructor, while this arena lives.
  std::string address() const;

  const ArenaShape& shape() const { return shape_; }
  int rank() const { return rank_; }

  // The slot of `rank` for `round`: a head of kHeadBytes and behind it slot_bytes.
  static constexpr std::size_t kHeadBytes = 64;
  std::byte* head(int rank, std::uint32_t round) const;
  std::byte* slot(int rank, std::uint32_t round) const { return head(rank, round) + kHeadBytes; }

  // Waits until no rank reads this rank's slot for `round` any more. It and the next throw
  // c10::DistError naming the rank that is gone, has given up or was waited for too long.
  void await_free(std::uint32_t round, const Patience& patience);
  void publish(std::uint32_t round);  // this rank's slot may be read
  void await(int rank, std::uint32_t round, const Patience& patience);  // until it is published
  void done(std::uint32_t round);  // this rank reads no slot of it any more

  // Reports to the others that this rank takes part no more: their waits end.
  void give_up();

 private:
  struct Counter;
  struct Line;
  struct Page;

  void map(bool create);
  Page& page() const;
  Line& line(int rank) const;
  void wait_until(Counter& counter, std::uint32_t target, int rank, const Patience& patience);
  void check_peer(const Counter& counter, std::uint32_t target, int rank, const Patience& patience);
  void report_lost(std::uint32_t lost);
  bool is_here(int rank) const;

  ArenaShape shape_;
  int rank_;
  int spins_ = 0;        // looks at a counter before sleeping
  core::Descriptor fd_;  // an open file of this rank's own: its lock shows that it lives
  std::uint64_t token_ = 0;
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t stride_ = 0;  // distance between slots
};

}  // namespace scaletrain::dist
