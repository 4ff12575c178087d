// Heartbeat of a worker, shown to the launcher in memory that both share: no lock, no system call,
// and a few nanoseconds each time.
//
// The launcher makes a file without a name for each of its workers (make_beat_file), which vanishes
// when both have ended. Its first page holds the beat; behind it lie the stacks that the worker
// writes when it is asked to (lib/core/process/stack_dump.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lib/core/descriptor.h"

namespace scaletrain::core {

enum class Phase : std::uint32_t {
  kStarting,
  kJoining,     // waits until all ranks are there and connected
  kData,        // waits for the next batch
  kCompute,     // forward, backward and update
  kCollective,  // has entered a collective and may wait in it
  kValidating,
  kSaving,
  kWaiting,  // for the other ranks, at the end
};
inline constexpr std::size_t kPhases = 8;

// "starting", "joining", "data", "compute", "collective", "validating", "saving", "waiting"
std::string_view to_text(Phase phase);

struct BeatPage;  // the shared page

// A worker's side. Copies write to the same page.
class Beat {
 public:
  Beat();                     // nobody reads it
  explicit Beat(int fd);      // the launcher's file. Throws core::Error of kMemory.
  void offer_stacks(int fd);  // After this call the launcher may ask for stacks, written to `fd`

  // One thread at a time: the one that trains.
  void enter(Phase phase);                   // again and again while in it: "still here"
  void begin_step(std::int64_t step);        // the optimizer step under way, from 1
  void set_total_steps(std::int64_t steps);  // steps of the run
  void name_next(const char* name);          // names the next collective; stays valid until then

  std::int64_t step() const;  // step of the last begin_step

  // A collective is entered, "all-reduce" or "broadcast"; from any thread. Returns its name. The
  // launcher sees this rank in it until complete_collective() is called, which is later
  // than the training thread's return from it where a device's queue does the waiting.
  const char* enter_collective(const char* kind);
  void complete_collective();  // one that was entered; from any thread
  void leave_collective();     // the training thread has returned from it: a sign of life

  // True if the launcher has reported that a rank of the job is gone (report_peer_lost).
  bool peer_is_lost() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// Heartbeat of one worker as the launcher reads it.
struct BeatState {
  std::uint64_t count = 0;  // changes with every beat
  Phase phase = Phase::kStarting;
  std::int64_t step = 0;         // 0: none yet
  std::int64_t total_steps = 0;  // 0: not known
  std::int64_t collectives = 0;  // entered so far
  int stack_signal = 0;          // signal that makes a thread write its stack; 0: none does
  std::uint32_t stacks = 0;      // written so far
};

struct BeatCollective {
  std::string kind, name;  // "all-reduce", "vote"
  std::int64_t step = 0;
};

// An empty file for one worker. Throws core::Error of kMemory.
Descriptor make_beat_file();

// Reports to the worker that beats in the file `fd` that another rank is gone: what it still waits
// for does not come. Throws core::InternalError.
void report_peer_lost(int fd);

class BeatReader {
 public:
  explicit BeatReader(int fd);  // stays the caller's. Throws core::Error of kMemory.
  ~BeatReader();
  BeatReader(BeatReader&& other) noexcept;
  BeatReader& operator=(BeatReader&&) = delete;

  BeatState state() const;
  // The collective `number`, from 1; nullopt where it was not entered, or long ago.
  std::optional<BeatCollective> collective(std::int64_t number) const;
  // Returns the stacks that were written after the page.
  std::string stacks() const;

 private:
  int fd_;
  const BeatPage* page_;
};

}  // namespace scaletrain::core
