// ConvNeXt with the tensor names and the initialisation of timm's ConvNeXt.
//
// Liu et al., "A ConvNet for the 2020s", 2022, sections 2.2 to 2.6. Maps are channels last in
// memory, so that LayerNorm and the dense layers can read the channels of a position without a
// copy. A stem with patches of 2 or 1 is for small images; unlike in timm, the later stages stay
// the same (timm adds a downsampling after a patch of 2).
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/nn/modules/container/modulelist.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/nn/layers/activations.h"
#include "lib/nn/layers/conv2d.h"
#include "lib/nn/layers/drop_path.h"
#include "lib/nn/layers/linear.h"
#include "lib/nn/layers/norm.h"
#include "lib/nn/model.h"

namespace scaletrain::nn {
namespace {

using at::Tensor;
using torch::nn::ModuleList;
using units::Context;
using units::Flow;

// timm truncates at -2 and 2, a hundred deviations away: an ordinary normal.
constexpr double kConvNextStd = 0.02;
constexpr double kConvNextEps = 1e-6;
constexpr std::size_t kStages = 4;

struct ConvNextShape {
  std::array<std::int64_t, kStages> depths{}, dims{};  // blocks and channels of each stage
};

struct ConvNextConfig {
  ConvNextShape shape;
  std::int64_t channels = 0;  // image channels
  std::int64_t patch_size = 0;
  double drop_path = 0;
  double layer_scale = 0;  // initial value; 0: none
};

std::shared_ptr<Conv2d> patch_conv(std::int64_t in, std::int64_t out, std::int64_t size) {
  return std::make_shared<Conv2d>(
      Conv2d::Options{.in = in, .out = out, .kernel = size, .stride = size, .bias = true});
}

// [batch, channels, height, width] channels last in memory -> [batch, height, width, channels],
// without a copy, and back.
Tensor by_position(const Tensor& maps) {
  return maps.contiguous(at::MemoryFormat::ChannelsLast).permute({0, 2, 3, 1});
}
Tensor as_maps(const Tensor& positions) { return positions.permute({0, 3, 1, 2}); }

// Two dense layers at each position.
class ConvNextMlp : public torch::nn::Module {
 public:
  explicit ConvNextMlp(std::int64_t dim)
      : fc1_(register_module("fc1", std::make_shared<Linear>(dim, 4 * dim))),
        fc2_(register_module("fc2", std::make_shared<Linear>(4 * dim, dim))) {}

  Tensor forward(const Tensor& input) { return fc2_->forward(nn::gelu(fc1_->forward(input))); }

 private:
  std::shared_ptr<Linear> fc1_, fc2_;
};

class ConvNextBlock : public torch::nn::Module {
 public:
  ConvNextBlock(std::int64_t dim, double drop_path, bool has_scale)
      : drop_path_(drop_path),
        conv_(register_module(
            "conv_dw",
            std::make_shared<Conv2d>(Conv2d::Options{
                .in = dim, .out = dim, .kernel = 7, .padding = 3, .bias = true, .groups = dim}))),
        norm_(register_module("norm", std::make_shared<LayerNorm>(dim, kConvNextEps))),
        mlp_(register_module("mlp", std::make_shared<ConvNextMlp>(dim))) {
    if (has_scale) scale_ = register_parameter("gamma", at::empty({dim}));
  }

  // [batch, dim, height, width] -> the same.
  Tensor forward(const Tensor& input) {
    Tensor branch = mlp_->forward(norm_->forward(by_position(conv_->forward(input))));
    if (scale_.defined()) branch = branch * scale_;
    return input + as_maps(drop_path(branch, drop_path_, is_training()));
  }

 private:
  double drop_path_;
  std::shared_ptr<Conv2d> conv_;
  std::shared_ptr<LayerNorm> norm_;
  std::shared_ptr<ConvNextMlp> mlp_;
  Tensor scale_;  // undefined without layer scale
};

// A stage without its blocks, which are units of their own.
struct Stage {
  std::shared_ptr<LayerNorm> norm;  // null in the first stage, which keeps the stem's maps
  std::shared_ptr<Conv2d> conv;
};

class ConvNext : public Model {
 public:
  ConvNext(const ConvNextConfig& config, std::int64_t classes) : layer_scale_(config.layer_scale) {
    const auto& [depths, dims] = config.shape;
    stem_ = patch_conv(config.channels, dims[0], config.patch_size);
    stem_norm_ = std::make_shared<LayerNorm>(dims[0], kConvNextEps, LayerNorm::ReadBy::kSums);
    register_module("stem", ModuleList(stem_, stem_norm_));
    std::int64_t blocks = 0;
    for (const std::int64_t depth : depths) blocks += depth;
    const std::vector<double> rates = drop_path_rates(config.drop_path, blocks);
    std::size_t rate = 0;
    ModuleList stages;
    for (std::size_t i = 0; i < kStages; ++i) {
      const auto stage = std::make_shared<torch::nn::Module>();
      if (i > 0) {
        downsamples_[i] = {std::make_shared<LayerNorm>(dims[i - 1], kConvNextEps),
                           patch_conv(dims[i - 1], dims[i], 2)};
        stage->register_module("downsample",
                               ModuleList(downsamples_[i].norm, downsamples_[i].conv));
      }
      ModuleList list;
      for (std::int64_t j = 0; j < depths[i]; ++j) {
        blocks_[i].push_back(
            std::make_shared<ConvNextBlock>(dims[i], rates[rate++], layer_scale_ > 0));
        list->push_back(blocks_[i].back());
      }
      stage->register_module("blocks", list);
      stages->push_back(stage);
    }
    register_module("stages", stages);
    const auto head = std::make_shared<torch::nn::Module>();
    head_norm_ =
        head->register_module("norm", std::make_shared<LayerNorm>(dims.back(), kConvNextEps));
    head_ = head->register_module("fc", std::make_shared<Linear>(dims.back(), classes));
    register_module("head", head);
  }

  std::vector<units::Unit> units() override {
    std::vector<units::Unit> result;
    result.push_back(unit("stem", {"stem"}, [this](const Flow& input, const Context&) -> Flow {
      return {as_maps(stem_norm_->forward(by_position(stem_->forward(input[0]))))};
    }));
    for (std::size_t i = 0; i < kStages; ++i) {
      if (i > 0) {
        const std::string name = fmt::format("stages.{}.downsample", i);
        result.push_back(unit(name, {name}, [this, i](const Flow& input, const Context&) -> Flow {
          const Stage& stage = downsamples_[i];
          return {stage.conv->forward(as_maps(stage.norm->forward(by_position(input[0]))))};
        }));
      }
      for (std::size_t j = 0; j < blocks_[i].size(); ++j) {
        const std::string name = fmt::format("stages.{}.blocks.{}", i, j);
        result.push_back(
            unit(name, {name}, [this, i, j](const Flow& input, const Context&) -> Flow {
              return {blocks_[i][j]->forward(input[0])};
            }));
      }
    }
    result.push_back(unit("head", {"head"}, [this](const Flow& input, const Context&) -> Flow {
      return {head_->forward(head_norm_->forward(input[0].mean({2, 3})))};
    }));
    return result;
  }

  void initialise(const std::string& name, const Tensor& logical,
                  at::Generator generator) const override {
    if (name.ends_with(".gamma")) {
      logical.fill_(layer_scale_);
    } else if (logical.dim() > 1) {
      logical.normal_(0, kConvNextStd, std::move(generator));
    } else if (name.ends_with(".bias")) {
      logical.zero_();
    } else {
      Model::initialise(name, logical, std::move(generator));
    }
  }

  units::WeightRules weight_rules() const override {
    return {.head = "head.fc", .input = "stem.0.weight"};
  }

  // As timm's group_matcher(): the downsampling of a stage belongs to its first block.
  std::vector<std::vector<std::string>> layers() override {
    std::vector<std::vector<std::string>> result;
    bool joins = false;
    for (const units::Unit& unit : units()) {
      if (!std::exchange(joins, unit.name.ends_with(".downsample"))) result.emplace_back();
      result.back().insert(result.back().end(), unit.tensors.begin(), unit.tensors.end());
    }
    return result;
  }

 private:
  double layer_scale_;
  std::shared_ptr<Conv2d> stem_;
  std::shared_ptr<LayerNorm> stem_norm_, head_norm_;
  std::array<Stage, kStages> downsamples_;
  std::array<std::vector<std::shared_ptr<ConvNextBlock>>, kStages> blocks_;
  std::shared_ptr<Linear> head_;
};

std::shared_ptr<Model> make_convnext(const ConvNextShape& shape, const recipe::Model& model) {
  const ConvNextConfig config{.shape = shape,
                              .channels = model.in_channels,
                              .patch_size = model.integer("patch_size"),
                              .drop_path = model.number("drop_path"),
                              .layer_scale = model.number("layer_scale")};
  return std::make_shared<ConvNext>(config, model.num_classes);
}

}  // namespace

std::shared_ptr<Model> make_convnext_tiny(const recipe::Model& model, std::int64_t /*image_size*/) {
  return make_convnext({{3, 3, 9, 3}, {96, 192, 384, 768}}, model);
}

std::shared_ptr<Model> make_convnext_small(const recipe::Model& model,
                                           std::int64_t /*image_size*/) {
  return make_convnext({{3, 3, 27, 3}, {96, 192, 384, 768}}, model);
}

std::shared_ptr<Model> make_convnext_base(const recipe::Model& model, std::int64_t /*image_size*/) {
  return make_convnext({{3, 3, 27, 3}, {128, 256, 512, 1024}}, model);
}

}  // namespace scaletrain::nn
