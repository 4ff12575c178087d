// Residual networks with torchvision's tensor names, stems and initialisation: ResNet-18 to -152,
// ResNeXt and Wide-ResNet; and with timm's "d" stem (resnet50d, resnext50d_32x4d and so on).
//
// He, Zhang, Ren and Sun, "Deep Residual Learning for Image Recognition", 2015, table 1; the stride
// of a bottleneck is in its 3x3 convolution, as in torchvision. Xie et al., "Aggregated Residual
// Transformations for Deep Neural Networks", 2016. Zagoruyko and Komodakis, "Wide Residual
// Networks", 2016. The "d" stem: He et al., "Bag of Tricks for Image Classification", 2018,
// figure 2.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/nn/modules/container/modulelist.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/nn/layers/conv2d.h"
#include "lib/nn/layers/image_norm.h"
#include "lib/nn/layers/initialise.h"
#include "lib/nn/layers/linear.h"
#include "lib/nn/model.h"

namespace scaletrain::nn {
namespace {

using at::Tensor;
using torch::nn::ModuleList;
using units::Context;
using units::Flow;

enum class BlockKind { kBasic, kBottleneck };

// Parameters in which the members of the family differ.
struct ResNetShape {
  BlockKind kind = BlockKind::kBasic;
  std::array<int, 4> depths{};                // blocks in each stage
  std::int64_t groups = 1, group_width = 64;  // 3x3 convolution, for a stage 64 wide
};

struct ResNetConfig {
  ResNetShape shape;
  std::int64_t channels = 0;  // image channels
  std::string norm;           // lib/nn/layers/image_norm.h
  bool deep_stem = false, zero_init_residual = false;
};

std::vector<Conv2d::Options> block_convs(const ResNetShape& shape, std::int64_t in,
                                         std::int64_t width, std::int64_t stride) {
  if (shape.kind == BlockKind::kBasic) {
    return {{in, width, 3, stride, 1}, {width, width, 3, 1, 1}};
  }
  const std::int64_t inner = width * shape.group_width / 64 * shape.groups;
  Conv2d::Options middle{inner, inner, 3, stride, 1};
  middle.groups = shape.groups;
  return {{in, inner, 1, 1, 0}, middle, {inner, 4 * width, 1, 1, 0}};
}

// Three 3x3 convolutions; their norms but the last one, which is the stem's "bn1". Under the
// numbers of timm's sequence, whose activations have no tensors.
class DeepStem : public torch::nn::Module {
 public:
  DeepStem(std::int64_t channels, const std::string& norm) {
    const std::array<Conv2d::Options, 3> convs{
        {{channels, 32, 3, 2, 1}, {32, 32, 3, 1, 1}, {32, 64, 3, 1, 1}}};
    for (std::size_t i = 0; i < convs.size(); ++i) {
      convs_.push_back(
          register_module(fmt::format("{}", 3 * i), std::make_shared<Conv2d>(convs[i])));
      if (i + 1 == convs.size()) break;
      norms_.push_back(
          register_module(fmt::format("{}", 3 * i + 1), make_image_norm(norm, convs[i].out)));
    }
  }

  Tensor forward(const Tensor& input, const Context& context) {
    Tensor output = input;
    for (std::size_t i = 0; i < norms_.size(); ++i) {
      output = norms_[i]->forward_relu(convs_[i]->forward(output), context);
    }
    return convs_.back()->forward(output);
  }

 private:
  std::vector<std::shared_ptr<Conv2d>> convs_;
  std::vector<std::shared_ptr<ImageNorm>> norms_;
};

// Shortcut that maps a block's input to its output shape: a strided 1x1 convolution, or with the
// "d" stem a 2x2 average pooling and an unstrided one, then a norm.
class Shortcut : public torch::nn::Module {
 public:
  Shortcut(std::int64_t in, std::int64_t out, std::int64_t stride, const ResNetConfig& config)
      : pools_(config.deep_stem && stride > 1) {
    const int first = config.deep_stem ? 1 : 0;  // timm's sequence begins with the pooling
    const Conv2d::Options conv{in, out, 1, config.deep_stem ? 1 : stride, 0};
    conv_ = register_module(fmt::format("{}", first), std::make_shared<Conv2d>(conv));
    norm_ = register_module(fmt::format("{}", first + 1), make_image_norm(config.norm, out));
  }

  Tensor forward(const Tensor& input, const Context& context) {
    const Tensor pooled =
        pools_ ? at::avg_pool2d(input, 2, 2, 0, /*ceil_mode=*/true, /*count_include_pad=*/false)
               : input;
    return norm_->forward(conv_->forward(pooled), context);
  }

 private:
  bool pools_;
  std::shared_ptr<Conv2d> conv_;
  std::shared_ptr<ImageNorm> norm_;
};

// relu(shortcut(x) + norm(conv(... relu(norm(conv(x)))))).
class Block : public torch::nn::Module {
 public:
  Block(const std::vector<Conv2d::Options>& convs, std::int64_t stride,
        const ResNetConfig& config) {
    const std::int64_t in = convs.front().in, out = convs.back().out;
    for (std::size_t i = 0; i < convs.size(); ++i) {
      convs_.push_back(
          register_module(fmt::format("conv{}", i + 1), std::make_shared<Conv2d>(convs[i])));
      norms_.push_back(
          register_module(fmt::format("bn{}", i + 1), make_image_norm(config.norm, convs[i].out)));
    }
    if (stride == 1 && in == out) return;
    shortcut_ = register_module("downsample", std::make_shared<Shortcut>(in, out, stride, config));
  }

  Tensor forward(const Tensor& input, const Context& context) {
    Tensor output = input;
    for (std::size_t i = 0; i + 1 < convs_.size(); ++i) {
      output = norms_[i]->forward_relu(convs_[i]->forward(output), context);
    }
    output = convs_.back()->forward(output);
    const Tensor residual = shortcut_ ? shortcut_->forward(input, context) : input;
    return norms_.back()->forward_relu(output, context, residual);
  }

 private:
  std::vector<std::shared_ptr<Conv2d>> convs_;
  std::vector<std::shared_ptr<ImageNorm>> norms_;
  std::shared_ptr<Shortcut> shortcut_;  // null if input and output have the same shape
};

class ResNet : public Model {
 public:
  ResNet(const ResNetConfig& config, std::int64_t classes)
      : zero_init_residual_(config.zero_init_residual),
        last_norm_(config.shape.kind == BlockKind::kBasic ? ".bn2.weight" : ".bn3.weight") {
    if (config.deep_stem) {
      deep_stem_ =
          register_module("conv1", std::make_shared<DeepStem>(config.channels, config.norm));
    } else {
      stem_ = register_module(
          "conv1", std::make_shared<Conv2d>(Conv2d::Options{config.channels, 64, 7, 2, 3}));
    }
    stem_norm_ = register_module("bn1", make_image_norm(config.norm, 64));
    std::int64_t in = 64;
    for (std::size_t i = 0; i < config.shape.depths.size(); ++i) {
      const std::int64_t width = std::int64_t{64} << i;
      ModuleList stage;
      for (int j = 0; j < config.shape.depths[i]; ++j) {
        const std::int64_t stride = i > 0 && j == 0 ? 2 : 1;
        const auto convs = block_convs(config.shape, in, width, stride);
        auto block = std::make_shared<Block>(convs, stride, config);
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
          const Tensor maps =
              stem_ ? stem_->forward(input[0]) : deep_stem_->forward(input[0], context);
          return {at::max_pool2d(stem_norm_->forward_relu(maps, context), 3, 2, 1)};
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

  units::WeightRules weight_rules() const override {
    return {.head = "fc", .input = deep_stem_ ? "conv1.0.weight" : "conv1.weight"};
  }

 private:
  // True for the last norm of a block, such as "layer1.0.bn2.weight" in a block of two
  // convolutions.
  bool is_last_norm(const std::string& name) const {
    return name.starts_with("layer") && name.ends_with(last_norm_);
  }

  bool zero_init_residual_;
  std::string last_norm_;
  std::shared_ptr<Conv2d> stem_;         // either this
  std::shared_ptr<DeepStem> deep_stem_;  // or this
  std::shared_ptr<ImageNorm> stem_norm_;
  std::vector<std::pair<std::string, std::shared_ptr<Block>>> blocks_;  // with their paths
  std::shared_ptr<Linear> head_;
};

}  // namespace

#define SCALETRAIN_RESNET(name, ...)                                                            \
  std::shared_ptr<Model> make_##name(const recipe::Model& model, std::int64_t /*image_size*/) { \
    const ResNetConfig config{.shape = {__VA_ARGS__},                                           \
                              .channels = model.in_channels,                                    \
                              .norm = model.text("norm"),                                       \
                              .deep_stem = model.text("stem") == "d",                           \
                              .zero_init_residual = model.flag("zero_init_residual")};          \
    return std::make_shared<ResNet>(config, model.num_classes);                                 \
  }

SCALETRAIN_RESNET(resnet18, BlockKind::kBasic, {2, 2, 2, 2})
SCALETRAIN_RESNET(resnet34, BlockKind::kBasic, {3, 4, 6, 3})
SCALETRAIN_RESNET(resnet50, BlockKind::kBottleneck, {3, 4, 6, 3})
SCALETRAIN_RESNET(resnet101, BlockKind::kBottleneck, {3, 4, 23, 3})
SCALETRAIN_RESNET(resnet152, BlockKind::kBottleneck, {3, 8, 36, 3})
SCALETRAIN_RESNET(resnext50_32x4d, BlockKind::kBottleneck, {3, 4, 6, 3}, 32, 4)
SCALETRAIN_RESNET(resnext101_32x8d, BlockKind::kBottleneck, {3, 4, 23, 3}, 32, 8)
SCALETRAIN_RESNET(wide_resnet50_2, BlockKind::kBottleneck, {3, 4, 6, 3}, 1, 128)
SCALETRAIN_RESNET(wide_resnet101_2, BlockKind::kBottleneck, {3, 4, 23, 3}, 1, 128)

#undef SCALETRAIN_RESNET

}  // namespace scaletrain::nn
