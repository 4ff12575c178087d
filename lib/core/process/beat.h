// Heartbeat of a worker, shown to the launcher through shared memory: no lock, no system call, a
// few nanoseconds each.
//
// The launcher makes an unnamed file for each worker (make_beat_file), which vanishes when both
// have ended. Its first page holds the heartbeat. After it come the stack traces that the worker
// writes on request (lib/core/process/stack_dump.h).
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
  kJoining,     // waits until all ranks are connected
  kData,        // waits for the next batch
  kCompute,     // forward, backward and update
  kCollective,  // has entered a collective and may be waiting in it
  kValidating,
  kSaving,
  kWaiting,  // waits for the other ranks, at the end
};
inline constexpr std::size_t kPhases = 8;

// Returns "starting", "joining", "data", "compute", "collective", "validating", "saving" or
// "waiting".
std::string_view to_text(Phase phase);

struct BeatPage;  // the shared page

// The worker's side of the heartbeat. Copies write to the same page.
class Beat {
 public:
  Beat();                     // a heartbeat that nobody reads
  explicit Beat(int fd);      // uses the launcher's file. Throws core::Error of kMemory.
  void offer_stacks(int fd);  // from now on the launcher may request stacks, written to `fd`

  // Call these from the training thread only.
  void enter(Phase phase);                   // call it repeatedly during a phase, as a sign of life
  void begin_step(std::int64_t step);        // starts optimizer step `step`, from 1
  void set_total_steps(std::int64_t steps);  // total number of steps of the run
  void name_next(const char* name);  // name of the next collective; must stay valid until then

  std::int64_t step() const;  // step of the last begin_step()

  // Enters a collective, "all-reduce" or "broadcast"; may be called from any thread. Returns its
  // name. The launcher sees this rank in the collective until complete_collective(). On a device,
  // that is later than the training thread's return, as the device's queue waits.
  const char* enter_collective(const char* kind);
  void complete_collective();  // completes an entered collective; from any thread
  void leave_collective();     // the training thread has returned from it, which is a sign of life

  // True if the launcher has reported the loss of another rank (report_peer_lost).
  bool peer_is_lost() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// Heartbeat of one worker as the launcher reads it.
struct BeatState {
  std::uint64_t count = 0;  // changes with every heartbeat
  Phase phase = Phase::kStarting;
  std::int64_t step = 0;         // 0: none yet
  std::int64_t total_steps = 0;  // 0: not known
  std::int64_t collectives = 0;  // collectives entered so far
  int stack_signal = 0;          // signal for a stack trace of a thread; 0: not supported
  std::uint32_t stacks = 0;      // stack traces written so far
};

struct BeatCollective {
  std::string kind, name;  // "all-reduce", "step consensus"
  std::int64_t step = 0;
};

// Makes an empty file for one worker. Throws core::Error of kMemory.
Descriptor make_beat_file();

// Reports to the worker of `fd` that another rank is lost, so that it stops waiting for it. Throws
// core::InternalError.
void report_peer_lost(int fd);

class BeatReader {
 public:
  explicit BeatReader(int fd);  // `fd` stays open. Throws core::Error of kMemory.
  ~BeatReader();
  BeatReader(BeatReader&& other) noexcept;
  BeatReader& operator=(BeatReader&&) = delete;

  BeatState state() const;
  // Returns collective `number`, from 1; nullopt if it has not been entered, or is too old.
  std::optional<BeatCollective> collective(std::int64_t number) const;
  // Returns the stack traces after the first page.
  std::string stacks() const;

 private:
  int fd_;
  const BeatPage* page_;
};

}  // namespace scaletrain::core
