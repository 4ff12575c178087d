// ResNet-18, -34 and -50 with torchvision's tensor names, stem and initialisation.
//
// He, Zhang, Ren and Sun, "Deep Residual Learning for Image Recognition", 2015, table 1; the stride
// of a bottleneck is in its 3x3 convolution, as in torchvision.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/nn/modules/container/modulelist.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/nn/layers/conv2d.h"
#include "lib/nn/layers/initialise.h"
#include "lib/nn/layers/linear.h"
#include "lib/nn/layers/norm.h"
#include "lib/nn/model.h"

namespace scaletrain::nn {
namespace {

using at::Tensor;
using torch::nn::ModuleList;
using units::Context;
using units::Flow;

enum class BlockKind { kBasic, kBottleneck };

struct ResNetConfig {
  BlockKind kind = BlockKind::kBasic;
  std::array<int, 4> depths{};  // blocks in each stage
};

std::vector<Conv2d::Options> block_convs(BlockKind kind, std::int64_t in, std::int64_t width,
                                         std::int64_t stride) {
  if (kind == BlockKind::kBasic) {
    return {{in, width, 3, stride, 1}, {width, width, 3, 1, 1}};
  }
  return {{in, width, 1, 1, 0}, {width, width, 3, stride, 1}, {width, 4 * width, 1, 1, 0}};
}

// relu(shortcut(x) + norm(conv(... relu(norm(conv(x)))))).
class Block : public torch::nn::Module {
 public:
  Block(const std::vector<Conv2d::Options>& convs, std::int64_t stride) {
    const std::int64_t in = convs.front().in, out = convs.back().out;
    for (std::size_t i = 0; i < convs.size(); ++i) {
      convs_.push_back(
          register_module(fmt::format("conv{}", i + 1), std::make_shared<Conv2d>(convs[i])));
      norms_.push_back(
          register_module(fmt::format("bn{}", i + 1), std::make_shared<BatchNorm>(convs[i].out)));
    }
    if (stride == 1 && in == out) return;
    shortcut_ = std::make_shared<Conv2d>(Conv2d::Options{in, out, 1, stride, 0});
    shortcut_norm_ = std::make_shared<BatchNorm>(out);
    register_module("downsample", ModuleList(shortcut_, shortcut_norm_));
  }

  Tensor forward(const Tensor& input, const Context& context) {
    Tensor output = input;
    for (std::size_t i = 0; i < convs_.size(); ++i) {
      if (i > 0) output.relu_();
      output = norms_[i]->forward(convs_[i]->forward(output), context);
    }
    output += shortcut_ ? shortcut_norm_->forward(shortcut_->forward(input), context) : input;
    return output.relu_();
  }

 private:
  std::vector<std::shared_ptr<Conv2d>> convs_;
  std::vector<std::shared_ptr<BatchNorm>> norms_;
  std::shared_ptr<Conv2d> shortcut_;  // null where the block's input fits its output
  std::shared_ptr<BatchNorm> shortcut_norm_;
};

class ResNet : public Model {
 public:
  ResNet(const ResNetConfig& config, std::int64_t classes, bool zero_init_residual)
      : zero_init_residual_(zero_init_residual),
        last_norm_(config.kind == BlockKind::kBasic ? ".bn2.weight" : ".bn3.weight"),
        stem_(register_module("conv1", std::make_shared<Conv2d>(Conv2d::Options{3, 64, 7, 2, 3}))),
        stem_norm_(register_module("bn1", std::make_shared<BatchNorm>(64))) {
    std::int64_t in = 64;
    for (std::size_t i = 0; i < config.depths.size(); ++i) {
      const std::int64_t width = std::int64_t{64} << i;
      ModuleList stage;
      for (int j = 0; j < config.depths[i]; ++j) {
        const std::int64_t stride = i > 0 && j == 0 ? 2 : 1;
        const auto convs = block_convs(config.kind, in, width, stride);
        auto block = std::make_shared<Block>(convs, stride);
        stage->push_back(block);
        blocks_.emplace_back(fmt::format("layer{}.{}", i + 1, j), std::move(block));
        in = convs.back().out;
      }
      register_module(fmt::format("layer{}", i + 1), stage);
    }
    head_ = register_module("fc", std::make_shared<Linear>(in, classes));
  }

  std::vector<units::Unit> units() override {
    std::vector<units::Unit> result;
    result.reserve(blocks_.size() + 2);
    result.push_back(
        unit("stem", {"conv1", "bn1"}, [this](const Flow& input, const Context& context) -> Flow {
          Tensor output = stem_norm_->forward(stem_->forward(input[0]), context).relu_();
          return {at::max_pool2d(output, 3, 2, 1)};
        }));
    for (const auto& named : blocks_) {
      Block& block = *named.second;
      result.push_back(unit(named.first, {named.first},
                            [&block](const Flow& input, const Context& context) -> Flow {
                              return {block.forward(input[0], context)};
                            }));
    }
    result.push_back(unit("head", {"fc"}, [this](const Flow& input, const Context&) -> Flow {
      return {head_->forward(input[0].mean({2, 3}))};
    }));
    return result;
  }

  // torchvision's: convolutions by their outputs.
  void initialise(const std::string& name, const Tensor& logical,
                  at::Generator generator) const override {
    if (logical.dim() == 4) {
      initialise_by_outputs(logical, std::move(generator));
    } else if (zero_init_residual_ && is_last_norm(name)) {
      logical.zero_();
    } else {
      Model::initialise(name, logical, std::move(generator));
    }
  }

 private:
  // Of a block: "layer1.0.bn2.weight" where a block has two convolutions.
  bool is_last_norm(const std::string& name) const {
    return name.starts_with("layer") && name.ends_with(last_norm_);
  }

  bool zero_init_residual_;
  std::string last_norm_;
  std::shared_ptr<Conv2d> stem_;
  std::shared_ptr<BatchNorm> stem_norm_;
  std::vector<std::pair<std::string, std::shared_ptr<Block>>> blocks_;  // by their paths
  std::shared_ptr<Linear> head_;
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
