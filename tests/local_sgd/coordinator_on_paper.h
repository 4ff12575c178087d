// The coordinator without connections: messages that it sends are kept until they are taken.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lib/local_sgd/diloco_coordinator.h"
#include "lib/local_sgd/hub_messages.h"
#include "lib/local_sgd/tensor_bytes.h"

namespace scaletrain::testing {

class CoordinatorOnPaper {
 public:
  explicit CoordinatorOnPaper(int replicas, int places = 1)
      : rules_({.replicas = replicas, .places = places}, 0) {}

  void hear(int rank, dist::HubMessage message) {
    rules_.received(rank, std::move(message), send_);
  }
  void lose(int rank) { rules_.lost(rank, send_); }
  void give(int rank, std::int32_t part, double weight) {
    hear(rank, {.kind = local_sgd::kPart,
                .number = part,
                .body = local_sgd::as_bytes(at::full({2}, weight))});
  }
  void synchronize(int rank, std::int64_t step) {
    hear(rank, {.kind = local_sgd::kSynchronize, .step = step});
  }

  // "mean 2.5", "synchronized", "stop requested", "stop at 7", "request 2", "left", "states sent",
  // "all left"; "" for none.
  std::string take(int rank) {
    if (sent_[rank].empty()) return "";
    const dist::HubMessage message = std::move(sent_[rank].front());
    sent_[rank].erase(sent_[rank].begin());
    switch (message.kind) {
      case local_sgd::kPart:
        return "mean " + short_text(local_sgd::as_floats(message.body)[1].item<double>());
      case local_sgd::kSynchronize:
        return "synchronized";
      case local_sgd::kStopRequested:
        return "stop requested";
      case local_sgd::kStopStep:
        return "stop at " + std::to_string(message.step);
      case local_sgd::kRequest:
        return "request " + std::to_string(message.number);
      case local_sgd::kLeave:
        return "left";
      case local_sgd::kState:
        return "of " + std::to_string(message.step) + ": number " + std::to_string(message.number) +
               ", " + short_text(local_sgd::as_floats(message.body)[0].item<double>());
      case local_sgd::kAwaitStates:
        return "states sent";
      case local_sgd::kAwaitAll:
        return "all left";
      default:
        return "kind " + std::to_string(message.kind);
    }
  }
  local_sgd::ReplicaProgress place(int rank) const {
    return rules_.progress()[static_cast<std::size_t>(rank)];
  }

 private:
  static std::string short_text(double value) {
    std::string text = std::to_string(value);
    text.erase(text.find_last_not_of('0') + 1);
    return text.back() == '.' ? text.substr(0, text.size() - 1) : text;
  }
  std::map<int, std::vector<dist::HubMessage>> sent_;
  dist::HubRules::Send send_ = [this](int rank, dist::HubMessage message) {
    sent_[rank].push_back(std::move(message));
  };
  local_sgd::DilocoCoordinator rules_;
};

}  // namespace scaletrain::testing
