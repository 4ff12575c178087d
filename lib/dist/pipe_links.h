// Point-to-point links of a pipeline: activations go to the next rank, gradients to the previous
// one. The links form a ring, since interleaved stages go round the ranks several times.
//
// Each direction between two neighbours has a group of its own: NCCL matches messages by order,
// which is the same at both ends only within one direction.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "lib/dist/mesh.h"

namespace scaletrain::dist {

// One direction of a link.
class PipeLink {
 public:
  // Connects the two ranks of `group`: rank 0 sends to rank 1.
  explicit PipeLink(Group& group) : group_(group) {}

  // Sends the elements of `tensor`, which is dense, in memory order, without waiting for the other
  // rank. The tensor must not change until it is sent.
  void send(const at::Tensor& tensor, const char* name);
  // Receives into `tensor`, which is dense and of the same size; waits.
  void receive(const at::Tensor& tensor, const char* name);
  // Send and receive at most kMostNumbers integers; the receiver waits for the values.
  static constexpr std::int64_t kMostNumbers = 127;
  void send_numbers(const std::vector<std::int64_t>& numbers, const char* name);
  std::vector<std::int64_t> receive_numbers(const char* name);
  // Waits until everything is sent.
  void flush();

  at::Device device() const { return group_.device(); }

 private:
  Group& group_;
  std::deque<std::pair<Pending, at::Tensor>> under_way_;
};

struct PipeLinks {
  PipeLink activations_in, activations_out;  // previous rank to this one, this one to the next
  PipeLink gradients_in, gradients_out;      // next rank to this one, this one to the previous
};

// Opens the links of a mesh that has a pipeline. All ranks call it.
PipeLinks open_pipe_links(Mesh& mesh);

}  // namespace scaletrain::dist
