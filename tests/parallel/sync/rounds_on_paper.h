// The rules of rounds without connections: what is sent is kept until it is taken.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/parallel/sync/flat_bytes.h"
#include "lib/parallel/sync/hub_words.h"
#include "lib/parallel/sync/round_mean.h"

namespace scaletrain::testing {

class RoundsOnPaper {
 public:
  explicit RoundsOnPaper(int replicas, int places = 1)
      : roll_(std::make_shared<parallel::ReplicaRoll>(replicas, 0)),
        given_(std::make_shared<parallel::GivenTensors>()),
        rules_({.replicas = replicas, .places = places}, roll_, given_) {}

  void hear(int rank, dist::HubMessage message) {
    rules_.received(rank, std::move(message), send_);
  }
  void lose(int rank) { rules_.lost(rank, send_); }
  void give(int rank, std::int32_t part, double weight) {
    hear(rank, {.kind = parallel::kPart,
                .number = part,
                .body = parallel::as_bytes(at::full({2}, weight))});
  }
  void meet(int rank, std::int64_t step) { hear(rank, {.kind = parallel::kMeet, .step = step}); }

  // "mean 2.5", "meet", "ask stop", "stop at 7", "wish 2", "left", "given", "all left"; "" for
  // none.
  std::string take(int rank) {
    if (sent_[rank].empty()) return "";
    const dist::HubMessage message = std::move(sent_[rank].front());
    sent_[rank].erase(sent_[rank].begin());
    switch (message.kind) {
      case parallel::kPart:
        return "mean " + short_text(parallel::as_floats(message.body)[1].item<double>());
      case parallel::kMeet:
        return "meet";
      case parallel::kAskStop:
        return "ask stop";
      case parallel::kStopAt:
        return "stop at " + std::to_string(message.step);
      case parallel::kAsk:
        return "wish " + std::to_string(message.number);
      case parallel::kLeave:
        return "left";
      case parallel::kGive:
        return "of " + std::to_string(message.step) + ": number " + std::to_string(message.number) +
               ", " + short_text(parallel::as_floats(message.body)[0].item<double>());
      case parallel::kAwaitGiven:
        return "given";
      case parallel::kAwaitAll:
        return "all left";
      default:
        return "kind " + std::to_string(message.kind);
    }
  }
  parallel::ReplicaPlace place(int rank) const {
    return roll_->places()[static_cast<std::size_t>(rank)];
  }
  parallel::GivenTensors& given() { return *given_; }

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
  std::shared_ptr<parallel::ReplicaRoll> roll_;
  std::shared_ptr<parallel::GivenTensors> given_;
  parallel::RoundMean rules_;
};

}  // namespace scaletrain::testing
