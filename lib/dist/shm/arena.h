// Shared memory of the ranks of one host, and their synchronization.
//
// Communication has rounds, numbered from 0. In each round a rank writes its own slot, publishes
// it, reads the slots of others, and reports that it is done, after which their owners may
// overwrite them. Each rank cycles through `slots` slots, so that it may be several rounds ahead.
// The file has no name and vanishes with the last rank, however that ends.
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
  // Creates the memory of a group; this rank is rank 0. Throws core::Error of kMemory.
  explicit ShmArena(const ArenaShape& shape);
  // Opens the memory at the address() of another rank. Throws core::Error of kMemory if it cannot
  // be opened or is another file.
  ShmArena(const std::string& address, int rank);
  ~ShmArena();
  ShmArena(const ShmArena&) = delete;
  ShmArena& operator=(const ShmArena&) = delete;

  // Returns the address for the other ranks' constructor; valid while this arena lives.
  std::string address() const;

  const ArenaShape& shape() const { return shape_; }
  int rank() const { return rank_; }

  // Returns the slot of `rank` for `round`: a header of kHeadBytes, then slot_bytes.
  static constexpr std::size_t kHeadBytes = 64;
  std::byte* head(int rank, std::uint32_t round) const;
  std::byte* slot(int rank, std::uint32_t round) const { return head(rank, round) + kHeadBytes; }

  // Waits until no rank reads this rank's slot for `round` any more. This function and await()
  // throw c10::DistError naming the rank that is lost, has given up or timed out.
  void await_free(std::uint32_t round, const Patience& patience);
  void publish(std::uint32_t round);  // this rank's slot may be read
  void await(int rank, std::uint32_t round, const Patience& patience);  // until it is published
  void done(std::uint32_t round);  // this rank has finished reading the round's slots

  // Reports to the other ranks that this rank has stopped: their waits end.
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
  int spins_ = 0;  // polls of a counter before sleeping
  core::Descriptor
      fd_;  // this rank's own open file description; its lock shows that the rank lives
  std::uint64_t token_ = 0;
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t stride_ = 0;  // distance between slots
};

}  // namespace scaletrain::dist
