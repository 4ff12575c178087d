// Fully connected layers over the flattened image.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "lib/nn/layers/linear.h"
#include "lib/nn/model.h"

namespace scaletrain::nn {
namespace {

using units::Context;
using units::Flow;

class Mlp : public Model {
 public:
  Mlp(const recipe::Model& model, std::int64_t image_size) : dropout_(model.number("dropout")) {
    std::int64_t features = model.in_channels * image_size * image_size;
    for (std::int64_t i = 0; i < model.integer("layers"); ++i) {
      const std::int64_t width = model.integer("hidden");
      hidden_.push_back(
          register_module(fmt::format("fc{}", i + 1), std::make_shared<Linear>(features, width)));
      features = width;
    }
    head_ = register_module("head", std::make_shared<Linear>(features, model.num_classes));
  }

  std::vector<units::Unit> units() override {
    std::vector<units::Unit> result;
    result.reserve(hidden_.size() + 1);
    for (std::size_t i = 0; i < hidden_.size(); ++i) {
      const std::string name = fmt::format("fc{}", i + 1);
      result.push_back(unit(name, {name}, [this, i](const Flow& input, const Context&) -> Flow {
        const at::Tensor output = hidden_[i]->forward_relu(input[0].flatten(1));
        return {dropout_ > 0 ? at::dropout(output, dropout_, is_training()) : output};
      }));
      result.back().draws = dropout_ > 0;
    }
    result.push_back(unit("head", {"head"}, [this](const Flow& input, const Context&) -> Flow {
      return {head_->forward(input[0])};
    }));
    result.back().draws = false;
    return result;
  }

  units::WeightRules weight_rules() const override { return {.head = "head"}; }

 private:
  double dropout_;
  std::vector<std::shared_ptr<Linear>> hidden_;
  std::shared_ptr<Linear> head_;
};

}  // namespace

std::shared_ptr<Model> make_mlp(const recipe::Model& model, std::int64_t image_size) {
  return std::make_shared<Mlp>(model, image_size);
}

}  // namespace scaletrain::nn
