// What replicas that train alone come to (lib/local_sgd/weight_sync.h), computed in one
// process.
#pragma once

#include <ATen/ATen.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "tests/local_sgd/replica_job.h"

namespace scaletrain::testing {

// Weights of all replicas, each trained by itself here, and what they exchange: PyTorch's SGD on
// the outer weights, in doubles.
class SyncReference {
 public:
  SyncReference(int ranks, const recipe::Sync& sync,
                std::optional<at::ScalarType> rounded_to = std::nullopt)
      : sync_(sync), rounded_to_(rounded_to) {
    for (const auto& parameter : replica_parameters()) {
      outer_.push_back(parameter.tensor.detach().to(at::kDouble).requires_grad_(true));
    }
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<at::Tensor> weights;
      for (const auto& one : outer_) weights.push_back(one.detach().clone());
      replicas_.push_back(weights);
    }
    auto options = torch::optim::SGDOptions(sync.outer.lr);
    options.momentum(sync.outer.momentum).nesterov(sync.outer.momentum > 0);
    for (const at::Tensor& one : outer_) {
      optimizers_.push_back(
          std::make_unique<torch::optim::SGD>(std::vector<at::Tensor>{one}, options));
    }
  }

  void step(int number) {
    for (std::size_t rank = 0; rank < replicas_.size(); ++rank) {
      for (at::Tensor& one : replicas_[rank]) {
        one = learned(one, static_cast<int>(rank), number);
      }
    }
  }

  void exchange(std::size_t parameter) {
    begin(parameter);
    end(parameter, 0);
  }

  void begin(std::size_t parameter) {
    const at::Tensor outer = outer_[parameter].detach();
    at::Tensor mean = at::zeros_like(outer);
    for (const auto& replica : replicas_) {
      const at::Tensor& weights = replica[parameter];
      mean += rounded_to_ ? (outer - weights).to(*rounded_to_) : weights;
    }
    // A sum is rounded, and then its mean.
    if (rounded_to_) mean = mean.to(*rounded_to_);
    means_[parameter] = (mean / static_cast<double>(replicas_.size())).to(at::kDouble);
  }

  // Nothing where it was not begun. mix: the share of each replica's own weights that stays.
  void end(std::size_t parameter, double mix) {
    if (means_.count(parameter) == 0) return;
    at::Tensor mean = means_.extract(parameter).mapped();
    const at::Tensor outer = outer_[parameter].detach();
    if (sync_.name == "diloco") {
      outer_[parameter].mutable_grad() = rounded_to_ ? mean : outer - mean;
      optimizers_[parameter]->step();
      mean = outer_[parameter].detach().clone();
    }
    for (auto& replica : replicas_) {
      replica[parameter] = replica[parameter] * mix + mean * (1 - mix);
    }
  }

  double largest_difference(const std::vector<units::NamedParameter>& all, int rank) const {
    double largest = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const at::Tensor apart =
          all[i].tensor.detach().to(at::kDouble) - replicas_[static_cast<std::size_t>(rank)][i];
      largest = std::max(largest, apart.abs().max().item<double>());
    }
    return largest;
  }

 private:
  recipe::Sync sync_;
  std::optional<at::ScalarType> rounded_to_;
  std::vector<at::Tensor> outer_;
  std::vector<std::unique_ptr<torch::optim::SGD>> optimizers_;
  std::vector<std::vector<at::Tensor>> replicas_;
  std::map<std::size_t, at::Tensor> means_;  // of parameters whose exchange is going on
};

}  // namespace scaletrain::testing
