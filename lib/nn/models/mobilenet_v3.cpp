// MobileNetV3 with torchvision's tensor names and initialisation.
//
// Howard et al., "Searching for MobileNetV3", 2019, tables 1 and 2.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/nn/modules/container/modulelist.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/nn/layers/conv2d.h"
#include "lib/nn/layers/image_norm.h"
#include "lib/nn/layers/initialise.h"
#include "lib/nn/layers/linear.h"
#include "lib/nn/layers/squeeze_excite.h"
#include "lib/nn/model.h"

namespace scaletrain::nn {
namespace {

using at::Tensor;
using torch::nn::ModuleList;
using units::Context;
using units::Flow;

enum class Activation { kNone, kRelu, kHardSwish };

// A row of the paper's tables.
struct Bottleneck {
  std::int64_t kernel = 0, expanded = 0, out = 0;
  bool squeezes = false;
  Activation activation = Activation::kRelu;
  std::int64_t stride = 1;
};

struct MobileNetConfig {
  std::vector<Bottleneck> blocks;
  std::int64_t last = 0;  // width of the hidden layer of the classifier
};

// Returns the nearest multiple of 8 that is at least nine tenths of the value (torchvision's
// _make_divisible).
std::int64_t multiple_of_8(std::int64_t channels) {
  const std::int64_t nearest = std::max<std::int64_t>(8, (channels + 4) / 8 * 8);
  return 10 * nearest < 9 * channels ? nearest + 8 : nearest;
}

// A convolution without a bias ("0"), its norm ("1") and an activation.
class ConvNorm : public torch::nn::Module {
 public:
  ConvNorm(const Conv2d::Options& conv, Activation activation, const std::string& norm)
      : activation_(activation),
        conv_(register_module("0", std::make_shared<Conv2d>(conv))),
        norm_(register_module("1",
                              make_image_norm(norm, conv.out, {.eps = 0.001, .momentum = 0.01}))) {}

  Tensor forward(const Tensor& input, const Context& context) {
    const Tensor maps = conv_->forward(input);
    if (activation_ == Activation::kRelu) return norm_->forward_relu(maps, context);
    const Tensor normed = norm_->forward(maps, context);
    return activation_ == Activation::kHardSwish ? at::hardswish(normed) : normed;
  }

 private:
  Activation activation_;
  std::shared_ptr<Conv2d> conv_;
  std::shared_ptr<ImageNorm> norm_;
};

std::shared_ptr<ConvNorm> pointwise(std::int64_t in, std::int64_t out, Activation activation,
                                    const std::string& norm) {
  return std::make_shared<ConvNorm>(Conv2d::Options{.in = in, .out = out}, activation, norm);
}

// Widens, filters each channel, weighs the channels, narrows.
class MobileBlock : public torch::nn::Module {
 public:
  MobileBlock(std::int64_t in, const Bottleneck& row, const std::string& norm)
      : adds_input_(row.stride == 1 && row.out == in) {
    ModuleList list;
    if (row.expanded != in) {
      expand_ = pointwise(in, row.expanded, row.activation, norm);
      list->push_back(expand_);
    }
    filter_ = std::make_shared<ConvNorm>(Conv2d::Options{.in = row.expanded,
                                                         .out = row.expanded,
                                                         .kernel = row.kernel,
                                                         .stride = row.stride,
                                                         .padding = row.kernel / 2,
                                                         .groups = row.expanded},
                                         row.activation, norm);
    list->push_back(filter_);
    if (row.squeezes) {
      squeeze_ = std::make_shared<SqueezeExcite>(row.expanded, multiple_of_8(row.expanded / 4));
      list->push_back(squeeze_);
    }
    project_ = pointwise(row.expanded, row.out, Activation::kNone, norm);
    list->push_back(project_);
    register_module("block", list);
  }

  Tensor forward(const Tensor& input, const Context& context) {
    Tensor output = filter_->forward(expand_ ? expand_->forward(input, context) : input, context);
    if (squeeze_) output = squeeze_->forward(output);
    output = project_->forward(output, context);
    return adds_input_ ? output + input : output;
  }

 private:
  bool adds_input_;
  std::shared_ptr<ConvNorm> expand_, filter_, project_;  // expand_ is null without expansion
  std::shared_ptr<SqueezeExcite> squeeze_;  // null in blocks without squeeze-and-excitation
};

class MobileNetV3 : public Model {
 public:
  MobileNetV3(const MobileNetConfig& config, const recipe::Model& model)
      : dropout_(model.number("dropout")) {
    constexpr std::int64_t kStem = 16;
    const std::string& norm = model.text("norm");
    ModuleList features;
    stem_ = std::make_shared<ConvNorm>(
        Conv2d::Options{
            .in = model.in_channels, .out = kStem, .kernel = 3, .stride = 2, .padding = 1},
        Activation::kHardSwish, norm);
    features->push_back(stem_);
    std::int64_t in = kStem;
    for (const Bottleneck& row : config.blocks) {
      blocks_.push_back(std::make_shared<MobileBlock>(in, row, norm));
      features->push_back(blocks_.back());
      in = row.out;
    }
    last_ = pointwise(in, 6 * in, Activation::kHardSwish, norm);
    features->push_back(last_);
    register_module("features", features);
    const auto classifier = std::make_shared<torch::nn::Module>();
    hidden_ = classifier->register_module("0", std::make_shared<Linear>(6 * in, config.last));
    head_ =
        classifier->register_module("3", std::make_shared<Linear>(config.last, model.num_classes));
    register_module("classifier", classifier);
  }

  std::vector<units::Unit> units() override {
    std::vector<units::Unit> result;
    result.reserve(blocks_.size() + 2);
    result.push_back(unit("features.0", {"features.0"},
                          [this](const Flow& input, const Context& context) -> Flow {
                            return {stem_->forward(input[0], context)};
                          }));
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const std::string name = fmt::format("features.{}", i + 1);
      result.push_back(
          unit(name, {name}, [this, i](const Flow& input, const Context& context) -> Flow {
            return {blocks_[i]->forward(input[0], context)};
          }));
    }
    const std::string last = fmt::format("features.{}", blocks_.size() + 1);
    result.push_back(unit("head", {last, "classifier"},
                          [this](const Flow& input, const Context& context) -> Flow {
                            const Tensor pooled = last_->forward(input[0], context).mean({2, 3});
                            const Tensor hidden = at::hardswish(hidden_->forward(pooled));
                            return {head_->forward(at::dropout(hidden, dropout_, is_training()))};
                          }));
    return result;
  }

  void initialise(const std::string& name, const Tensor& logical,
                  at::Generator generator) const override {
    if (logical.dim() == 4) {
      initialise_by_outputs(logical, std::move(generator));
    } else if (logical.dim() == 2) {
      logical.normal_(0, 0.01, std::move(generator));
    } else if (name.ends_with(".bias")) {
      logical.zero_();
    } else {
      Model::initialise(name, logical, std::move(generator));
    }
  }

  units::WeightRules weight_rules() const override {
    return {.head = "classifier.3", .input = "features.0.0.weight"};
  }

 private:
  double dropout_;
  std::shared_ptr<ConvNorm> stem_, last_;
  std::vector<std::shared_ptr<MobileBlock>> blocks_;
  std::shared_ptr<Linear> hidden_, head_;
};

constexpr Activation kRelu = Activation::kRelu, kSwish = Activation::kHardSwish;

}  // namespace

std::shared_ptr<Model> make_mobilenet_v3_large(const recipe::Model& model,
                                               std::int64_t /*image_size*/) {
  const MobileNetConfig config{{{3, 16, 16, false, kRelu, 1},
                                {3, 64, 24, false, kRelu, 2},
                                {3, 72, 24, false, kRelu, 1},
                                {5, 72, 40, true, kRelu, 2},
                                {5, 120, 40, true, kRelu, 1},
                                {5, 120, 40, true, kRelu, 1},
                                {3, 240, 80, false, kSwish, 2},
                                {3, 200, 80, false, kSwish, 1},
                                {3, 184, 80, false, kSwish, 1},
                                {3, 184, 80, false, kSwish, 1},
                                {3, 480, 112, true, kSwish, 1},
                                {3, 672, 112, true, kSwish, 1},
                                {5, 672, 160, true, kSwish, 2},
                                {5, 960, 160, true, kSwish, 1},
                                {5, 960, 160, true, kSwish, 1}},
                               1280};
  return std::make_shared<MobileNetV3>(config, model);
}

std::shared_ptr<Model> make_mobilenet_v3_small(const recipe::Model& model,
                                               std::int64_t /*image_size*/) {
  const MobileNetConfig config{{{3, 16, 16, true, kRelu, 2},
                                {3, 72, 24, false, kRelu, 2},
                                {3, 88, 24, false, kRelu, 1},
                                {5, 96, 40, true, kSwish, 2},
                                {5, 240, 40, true, kSwish, 1},
                                {5, 240, 40, true, kSwish, 1},
                                {5, 120, 48, true, kSwish, 1},
                                {5, 144, 48, true, kSwish, 1},
                                {5, 288, 96, true, kSwish, 2},
                                {5, 576, 96, true, kSwish, 1},
                                {5, 576, 96, true, kSwish, 1}},
                               1024};
  return std::make_shared<MobileNetV3>(config, model);
}

}  // namespace scaletrain::nn
