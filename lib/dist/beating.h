// A process group's backend that beats when a collective is entered, whoever asks for it: the
// Reducer talks to the backend itself.
#pragma once

#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>
#include <vector>

#include "lib/core/beat.h"

namespace scaletrain::dist {

// Base: c10d::ProcessGroupGloo or c10d::ProcessGroupNCCL; the arguments after `beat` are its.
template <class Base>
class Beating : public Base {
 public:
  template <class... Args>
  explicit Beating(core::Beat beat, Args&&... args)
      : Base(std::forward<Args>(args)...), beat_(std::move(beat)) {}

  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override {
    beat_.enter_collective("all-reduce");
    return Base::allreduce(tensors, options);
  }
  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) override {
    beat_.enter_collective("broadcast");
    return Base::broadcast(tensors, options);
  }

 private:
  core::Beat beat_;
};

}  // namespace scaletrain::dist
