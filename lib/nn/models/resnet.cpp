// ResNet-18, -34 and -50 with torchvision's tensor names, stem and initialisation.
//
// He, Zhang, Ren and Sun, "Deep Residual Learning for Image Recognition", 2015, table 1; the stride
// of a bottleneck is in its 3x3 convolution, as in torchvision.
#include <fmt/format.h>
#include <torch/nn/functional/pooling.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <array>
#include <vector>

#include "lib/nn/conv.h"
#include "lib/nn/model.h"

namespace scaletrain::nn {
namespace {

using torch::Tensor;
using torch::nn::BatchNorm2d;

enum class BlockKind { kBasic, kBottleneck };

struct ResNetConfig {
  BlockKind kind = BlockKind::kBasic;
  std::array<int, 4> depths{};  // blocks in each stage
};

std::vector<Conv::Options> block_convs(BlockKind kind, std::int64_t in, std::int64_t width,
                                       std::int64_t stride) {
  if (kind == BlockKind::kBasic) {
    return {{in, width, 3, stride, 1}, {width, width, 3, 1, 1}};
  }
  return {{in, width, 1, 1, 0}, {width, width, 3, stride, 1}, {width, 4 * width, 1, 1, 0}};
}

// relu(shortcut(x) + norm(conv(... relu(norm(conv(x)))))).
class Block : public torch::nn::Module {
 public:
  Block(const std::vector<Conv::Options>& convs, std::int64_t stride) {
    const std::int64_t in = convs.front().in, out = convs.back().out;
    for (std::size_t i = 0; i < convs.size(); ++i) {
      convs_.push_back(
          register_module(fmt::format("conv{}", i + 1), std::make_shared<Conv>(convs[i])));
      norms_.emplace_back(register_module(fmt::format("bn{}", i + 1), BatchNorm2d(convs[i].out)));
    }
    if (stride != 1 || in != out) {
      shortcut_ = register_module(
          "downsample", torch::nn::Sequential(Conv({in, out, 1, stride, 0}), BatchNorm2d(out)));
    }
  }

  Tensor forward(const Tensor& input) {
    Tensor output = input;
    for (std::size_t i = 0; i < convs_.size(); ++i) {
      if (i > 0) output.relu_();
      output = norms_[i](convs_[i]->forward(output));
    }
    output += shortcut_ ? shortcut_->forward(input) : input;
    return output.relu_();
  }

  void zero_last_norm() { torch::nn::init::zeros_(norms_.back()->weight); }

 private:
  std::vector<std::shared_ptr<Conv>> convs_;
  std::vector<BatchNorm2d> norms_;
  torch::nn::Sequential shortcut_{nullptr};
};

class ResNet : public Model {
 public:
  ResNet(const ResNetConfig& config, std::int64_t classes, bool zero_init_residual)
      : stem_(register_module("conv1", std::make_shared<Conv>(Conv::Options{3, 64, 7, 2, 3}))),
        stem_norm_(register_module("bn1", BatchNorm2d(64))) {
    std::int64_t in = 64;
    for (std::size_t i = 0; i < config.depths.size(); ++i) {
      const std::int64_t width = std::int64_t{64} << i;
      torch::nn::Sequential stage;
      for (int j = 0; j < config.depths[i]; ++j) {
        const std::int64_t stride = i > 0 && j == 0 ? 2 : 1;
        const auto convs = block_convs(config.kind, in, width, stride);
        auto block = std::make_shared<Block>(convs, stride);
        if (zero_init_residual) block->zero_last_norm();
        stage->push_back(block);
        in = convs.back().out;
      }
      stages_.emplace_back(register_module(fmt::format("layer{}", i + 1), stage));
    }
    head_ = register_module("fc", torch::nn::Linear(in, classes));
  }

  Tensor forward(const Tensor& input) override {
    Tensor output = stem_norm_(stem_->forward(input)).relu_();
    output = at::max_pool2d(output, 3, 2, 1);
    for (auto& stage : stages_) output = stage->forward(output);
    return head_(output.mean({2, 3}));
  }

 private:
  std::shared_ptr<Conv> stem_;
  BatchNorm2d stem_norm_;
  std::vector<torch::nn::Sequential> stages_;
  torch::nn::Linear head_{nullptr};
};

std::shared_ptr<Model> make_resnet(const ResNetConfig& config, const recipe::Model& model) {
  return std::make_shared<ResNet>(config, model.num_classes, model.flag("zero_init_residual"));
}

}  // namespace

std::shared_ptr<Model> make_resnet18(const recipe::Model& model, std::int64_t /*image_size*/) {
  return make_resnet({BlockKind::kBasic, {2, 2, 2, 2}}, model);
}

std::shared_ptr<Model> make_resnet34(const recipe::Model& model, std::int64_t /*image_size*/) {
  return make_resnet({BlockKind::kBasic, {3, 4, 6, 3}}, model);
}

std::shared_ptr<Model> make_resnet50(const recipe::Model& model, std::int64_t /*image_size*/) {
  return make_resnet({BlockKind::kBottleneck, {3, 4, 6, 3}}, model);
}

}  // namespace scaletrain::nn
