// Collectives of the ranks of one host through shared memory.
//
// All ranks make the same calls in the same order. Each call compares the ranks' arguments and
// throws core::InternalError on all of them if they differ. Throws c10::DistError if a rank is lost
// or on timeout. After an error every call throws. One thread at a time.
#pragma once

#include <c10/core/ScalarType.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <vector>

#include "lib/dist/shm/arena.h"

namespace scaletrain::dist {

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

// Element type, operation and count of a reduction.
struct Reduction {
  c10::ScalarType type = c10::ScalarType::Float;
  c10d::ReduceOp::RedOpType operation = c10d::ReduceOp::RedOpType::SUM;
};

// Describes a rank's call, in the header of its first slot.
struct ShmCall {
  std::uint32_t kind = 0, type = 0, operation = 0, root = 0;
  std::uint64_t bytes = 0, sizes = 0;  // `sizes`: digest of a list's sizes

  bool operator==(const ShmCall&) const = default;
};

class ShmExchange {
 public:
  ShmExchange(std::unique_ptr<ShmArena> arena, std::chrono::milliseconds timeout);

  int rank() const { return arena_->rank(); }
  int ranks() const { return arena_->shape().ranks; }

  void all_reduce(Bytes data, const Reduction& reduction);
  // Sends inputs[j] to rank j; `output`, which may overlap inputs[rank], receives this rank's
  // result.
  void reduce_scatter(const std::vector<ConstBytes>& inputs, Bytes output,
                      const Reduction& reduction);
  // Receives rank j's `input` in outputs[j]; `input` may overlap outputs[rank].
  void all_gather(ConstBytes input, const std::vector<Bytes>& outputs);
  void gather(ConstBytes input, const std::vector<Bytes>& outputs, int root);
  void broadcast(Bytes data, int root);
  // Sends inputs[j] to rank j and receives outputs[j] from it; sizes may differ and be zero.
  void all_to_all(const std::vector<ConstBytes>& inputs, const std::vector<Bytes>& outputs);
  void barrier();

  // Ends a running call and all later ones; any thread may call it.
  void stop() { stopped_ = true; }
  void give_up();  // stops the other ranks too

 private:
  template <class Put, class Take>
  void run(const ShmCall& call, std::size_t rounds, const Put& put, const Take& take);
  template <class Put, class Take>
  void run_rounds(const ShmCall& call, std::size_t rounds, const Put& put, const Take& take);
  void compare(const ShmCall& call, std::uint32_t round) const;
  void all_reduce_at_once(Bytes data, const Reduction& reduction, const ShmCall& call);
  void all_reduce_in_parts(Bytes data, const Reduction& reduction, const ShmCall& call);
  void exchange_parts(const ShmCall& call, std::size_t rounds,
                      const std::vector<ConstBytes>& inputs, const std::vector<Bytes>& outputs);
  std::size_t part_bytes() const;  // size of a slot's part for each other rank

  std::unique_ptr<ShmArena> arena_;
  std::chrono::milliseconds timeout_;
  std::atomic<bool> stopped_ = false;
  std::uint32_t round_ = 0;  // number of the next round
};

}  // namespace scaletrain::dist
