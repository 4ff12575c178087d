// Fully connected layers over the flattened image.
#include <fmt/format.h>
#include <torch/nn/functional/dropout.h>
#include <torch/nn/modules/linear.h>

#include <vector>

#include "lib/nn/model.h"

namespace scaletrain::nn {
namespace {

class Mlp : public Model {
 public:
  Mlp(const recipe::Model& model, std::int64_t image_size) : dropout_(model.number("dropout")) {
    std::int64_t features = 3 * image_size * image_size;
    for (std::int64_t i = 0; i < model.integer("layers"); ++i) {
      const std::int64_t width = model.integer("hidden");
      hidden_.emplace_back(
          register_module(fmt::format("fc{}", i + 1), torch::nn::Linear(features, width)));
      features = width;
    }
    head_ = register_module("head", torch::nn::Linear(features, model.num_classes));
  }

  torch::Tensor forward(const torch::Tensor& input) override {
    torch::Tensor output = input.flatten(1);
    for (auto& layer : hidden_) {
      output = at::dropout(layer(output).relu_(), dropout_, is_training());
    }
    return head_(output);
  }

 private:
  double dropout_;
  std::vector<torch::nn::Linear> hidden_;
  torch::nn::Linear head_{nullptr};
};

}  // namespace

std::shared_ptr<Model> make_mlp(const recipe::Model& model, std::int64_t image_size) {
  return std::make_shared<Mlp>(model, image_size);
}

}  // namespace scaletrain::nn
