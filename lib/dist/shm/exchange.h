// Collectives among the ranks of one host, through memory that they share.
//
// All ranks make the same calls in the same order. Each call compares what the ranks ask for and
// throws core::InternalError on all of them where it differs; otherwise, where a rank is lost or
// time is up, c10::DistError. After an error every call throws. One thread at a time.
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

// Numbers that are added up, or otherwise made one.
struct Reduction {
  c10::ScalarType type = c10::ScalarType::Float;
  c10d::ReduceOp::RedOpType operation = c10d::ReduceOp::RedOpType::SUM;
};

// Describes a call on one rank, in the head of its first slot.
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
  // inputs[j] goes to rank j; `output` becomes this rank's. It may lie in inputs[rank].
  void reduce_scatter(const std::vector<ConstBytes>& inputs, Bytes output,
                      const Reduction& reduction);
  // outputs[j] becomes what rank j has; `input` may lie in outputs[rank].
  void all_gather(ConstBytes input, const std::vector<Bytes>& outputs);
  void gather(ConstBytes input, const std::vector<Bytes>& outputs, int root);
  void broadcast(Bytes data, int root);
  // inputs[j] goes to rank j, outputs[j] comes from it; sizes may differ, zero too.
  void all_to_all(const std::vector<ConstBytes>& inputs, const std::vector<Bytes>& outputs);
  void barrier();

  // Ends a call under way and all later ones; from any thread.
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
  std::size_t part_bytes() const;  // part of a slot for each other rank

  std::unique_ptr<ShmArena> arena_;
  std::chrono::milliseconds timeout_;
  std::atomic<bool> stopped_ = false;
  std::uint32_t round_ = 0;  // the next
};

}  // namespace scaletrain::dist
