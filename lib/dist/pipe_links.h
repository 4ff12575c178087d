// How the ranks of a pipeline pass on what their stages give: to the next one activations, to the
// one before gradients, in a ring, since stages may go round the ranks several times.
//
// Each direction between two neighbours has a group of its own, in which nothing else is exchanged:
// NCCL matches messages by their order, and only that of one direction is the same at both ends.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "lib/dist/mesh.h"

namespace scaletrain::dist {

// One direction.
class PipeLink {
 public:
  // Connects the two ranks of `group`: rank 0 sends to rank 1.
  explicit PipeLink(Group& group) : group_(group) {}

  // Sends the elements of `tensor`, which is dense, as they lie in memory; nobody changes it until
  // they are sent. Does not wait for the other rank.
  void send(const at::Tensor& tensor, const char* name);
  // Fills `tensor`, dense and as large; waits.
  void receive(const at::Tensor& tensor, const char* name);
  // At most kMostNumbers whole numbers; who gets them waits for their values.
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

// Opens those of a mesh that has a pipeline. Every rank calls it.
PipeLinks open_pipe_links(Mesh& mesh);

}  // namespace scaletrain::dist
