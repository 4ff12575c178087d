// A process group's backend whose collectives are listened to, whoever asks for them: the Reducer
// talks to the backend itself.
#pragma once

#include <memory>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>
#include <vector>

namespace scaletrain::dist {

class CollectiveListener {
 public:
  virtual ~CollectiveListener() = default;
  // A collective, "all-reduce", "broadcast" or "gather", is about to start; returns its name, which
  // stays valid.
  virtual const char* enter(const char* kind) = 0;
  // It is under way.
  virtual void started(const char* name, c10::intrusive_ptr<c10d::Work> work) = 0;
};

// Base: c10d::ProcessGroupGloo or c10d::ProcessGroupNCCL; the arguments after `listener` are its.
template <class Base>
class Watched : public Base {
 public:
  template <class... Args>
  explicit Watched(std::shared_ptr<CollectiveListener> listener, Args&&... args)
      : Base(std::forward<Args>(args)...), listener_(std::move(listener)) {}

  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override {
    return listened("all-reduce", [&] { return Base::allreduce(tensors, options); });
  }
  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) override {
    return listened("broadcast", [&] { return Base::broadcast(tensors, options); });
  }
  c10::intrusive_ptr<c10d::Work> gather(std::vector<std::vector<at::Tensor>>& gathered,
                                        std::vector<at::Tensor>& tensors,
                                        const c10d::GatherOptions& options) override {
    return listened("gather", [&] { return Base::gather(gathered, tensors, options); });
  }

 private:
  template <class Start>
  c10::intrusive_ptr<c10d::Work> listened(const char* kind, const Start& start) {
    const char* const name = listener_->enter(kind);
    c10::intrusive_ptr<c10d::Work> work = start();
    listener_->started(name, work);
    return work;
  }

  std::shared_ptr<CollectiveListener> listener_;
};

}  // namespace scaletrain::dist
