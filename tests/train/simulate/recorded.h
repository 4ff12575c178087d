// What a rank asks of its groups, by name and in order: seen where c10d hands it to a backend,
// whoever asks.
#pragma once

#include <ATen/record_function.h>
#include <fmt/format.h>

#include <map>
#include <mutex>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <vector>

namespace scaletrain::testing {

struct RecordedCall {
  std::string kind;  // "allreduce_" and so on, c10d's
  std::int64_t bytes = 0, elements = 0;
  int ranks = 0;  // of the group
};

class Recorder {
 public:
  Recorder() {
    current() = this;
    handle_ = at::addGlobalCallback(
        at::RecordFunctionCallback(
            [](const at::RecordFunction& call) -> std::unique_ptr<at::ObserverContext> {
              const std::string name = call.name();
              if (name.starts_with("c10d::")) current()->note(name.substr(6), call.inputs());
              return nullptr;
            })
            .needsInputs(true)
            .scopes({at::RecordScope::FUNCTION}));
  }
  ~Recorder() { at::removeCallback(handle_); }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // By the name of the group.
  std::map<std::string, std::vector<RecordedCall>> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(calls_, {});
  }

 private:
  static Recorder*& current() {
    static Recorder* recorder = nullptr;
    return recorder;
  }

  // Of what goes in and what comes out the larger one is the whole tensor.
  void note(const std::string& kind, c10::ArrayRef<const c10::IValue> inputs) {
    RecordedCall call{.kind = kind};
    std::string group;
    for (const c10::IValue& input : inputs) {
      at::Tensor tensor;
      if (input.isTensor()) tensor = input.toTensor();
      if (input.isTensorList() && !input.toTensorVector().empty()) {
        tensor = input.toTensorVector().front();
      }
      if (tensor.defined() && static_cast<std::int64_t>(tensor.nbytes()) > call.bytes) {
        call.bytes = static_cast<std::int64_t>(tensor.nbytes());
        call.elements = tensor.numel();
      }
      if (group.empty() && input.isCustomClass()) {
        const auto asked = input.toCustomClass<c10d::ProcessGroup>();
        group = asked->getGroupDesc();
        call.ranks = asked->getSize();
      }
    }
    const std::lock_guard lock(mutex_);
    calls_[group].push_back(std::move(call));
  }

  at::CallbackHandle handle_ = 0;
  std::mutex mutex_;
  std::map<std::string, std::vector<RecordedCall>> calls_;
};

}  // namespace scaletrain::testing
