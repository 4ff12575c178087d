// Vision transformers with the tensor names and the initialisation of timm's VisionTransformer.
//
// Dosovitskiy et al., "An Image is Worth 16x16 Words", 2020, section 3.1; dropout as in its
// appendix B.1: after every dense layer but the query-key-value product and the head, and after the
// position embedding. Without a class token, the head reads the mean over the patches: Beyer, Zhai
// and Kolesnikov, "Better plain ViT baselines for ImageNet-1k", 2022; timm's global_pool="avg"
// without a class token.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/nn/modules/container/modulelist.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/nn/layers/activations.h"
#include "lib/nn/layers/attention.h"
#include "lib/nn/layers/conv2d.h"
#include "lib/nn/layers/drop_path.h"
#include "lib/nn/layers/dropout.h"
#include "lib/nn/layers/layer_scale.h"
#include "lib/nn/layers/linear.h"
#include "lib/nn/layers/norm.h"
#include "lib/nn/model.h"

namespace scaletrain::nn {
namespace {

using at::Tensor;
using units::Context;
using units::Flow;

// timm truncates at -2 and 2, a hundred deviations away: an ordinary normal.
constexpr double kStd = 0.02;
constexpr double kEps = 1e-6;

struct VitConfig {
  std::int64_t channels = 0;  // image channels
  std::int64_t patch_size = 0, dim = 0, depth = 0, heads = 0, hidden = 0, patches = 0;
  double dropout = 0, drop_path = 0;
  double layer_scale = 0;  // initial value; 0: none
  // The head reads the class token (true) or the mean of all tokens (false).
  bool class_token = true;

  std::int64_t head_dim() const { return dim / heads; }
};

class VitAttention : public torch::nn::Module {
 public:
  explicit VitAttention(const VitConfig& config)
      : qkv_(register_module("qkv", std::make_shared<Linear>(config.dim, 3 * config.dim))),
        mix_(register_module(
            "mix", std::make_shared<Attention>(Attention::Options{.head_dim = config.head_dim()}))),
        proj_(register_module("proj", std::make_shared<Linear>(config.dim, config.dim))),
        dropout_(register_module("proj_drop", std::make_shared<Dropout>(config.dropout))) {}

  // [batch, tokens, dim] -> the same.
  Tensor forward(const Tensor& input) {
    return dropout_->forward(proj_->forward(mix_->forward(qkv_->forward(input))));
  }

 private:
  std::shared_ptr<Linear> qkv_;
  std::shared_ptr<Attention> mix_;
  std::shared_ptr<Linear> proj_;
  std::shared_ptr<Dropout> dropout_;
};

class VitMlp : public torch::nn::Module {
 public:
  explicit VitMlp(const VitConfig& config)
      : fc1_(register_module("fc1", std::make_shared<Linear>(config.dim, config.hidden))),
        dropout1_(register_module("drop1", std::make_shared<Dropout>(config.dropout))),
        fc2_(register_module("fc2", std::make_shared<Linear>(config.hidden, config.dim))),
        dropout2_(register_module("drop2", std::make_shared<Dropout>(config.dropout))) {}

  Tensor forward(const Tensor& input) {
    const Tensor hidden = dropout1_->forward(nn::gelu(fc1_->forward(input)));
    return dropout2_->forward(fc2_->forward(hidden));
  }

 private:
  std::shared_ptr<Linear> fc1_;
  std::shared_ptr<Dropout> dropout1_;
  std::shared_ptr<Linear> fc2_;
  std::shared_ptr<Dropout> dropout2_;
};

class VitBlock : public torch::nn::Module {
 public:
  VitBlock(const VitConfig& config, double drop_path)
      : drop_path_(drop_path),
        norm1_(register_module("norm1", std::make_shared<LayerNorm>(config.dim, kEps))),
        attention_(register_module("attn", std::make_shared<VitAttention>(config))),
        norm2_(register_module("norm2", std::make_shared<LayerNorm>(config.dim, kEps))),
        mlp_(register_module("mlp", std::make_shared<VitMlp>(config))) {
    if (config.layer_scale == 0) return;
    scale1_ = register_module("ls1", std::make_shared<LayerScale>(config.dim, config.layer_scale));
    scale2_ = register_module("ls2", std::make_shared<LayerScale>(config.dim, config.layer_scale));
  }

  Tensor forward(const Tensor& input) {
    const auto [stream, first] = norm1_->forward_sum(input);
    const auto [attended, second] =
        norm2_->forward_sum(stream, branch(attention_->forward(first), scale1_));
    return attended + branch(mlp_->forward(second), scale2_);
  }

 private:
  Tensor branch(const Tensor& output, const std::shared_ptr<LayerScale>& scale) {
    return drop_path(scale ? scale->forward(output) : output, drop_path_, is_training());
  }

  double drop_path_;
  std::shared_ptr<LayerNorm> norm1_;
  std::shared_ptr<VitAttention> attention_;
  std::shared_ptr<LayerScale> scale1_, scale2_;  // null without layer scale
  std::shared_ptr<LayerNorm> norm2_;
  std::shared_ptr<VitMlp> mlp_;
};

// Patches as tokens: a convolution whose stride is its kernel, under timm's name
// "patch_embed.proj".
class PatchEmbed : public torch::nn::Module {
 public:
  explicit PatchEmbed(const VitConfig& config)
      : proj_(register_module("proj",
                              std::make_shared<Conv2d>(Conv2d::Options{.in = config.channels,
                                                                       .out = config.dim,
                                                                       .kernel = config.patch_size,
                                                                       .stride = config.patch_size,
                                                                       .bias = true}))) {}

  // [batch, channels, size, size] -> [batch, patches, dim], row by row.
  Tensor forward(const Tensor& input) { return proj_->forward(input).flatten(2).transpose(1, 2); }

 private:
  std::shared_ptr<Conv2d> proj_;
};

class Vit : public Model {
 public:
  Vit(const VitConfig& config, std::int64_t classes)
      : dropout_(config.dropout), heads_(config.heads), head_dim_(config.head_dim()) {
    if (config.class_token) {
      class_token_ = register_parameter("cls_token", at::empty({1, 1, config.dim}));
    }
    const std::int64_t tokens = config.patches + (config.class_token ? 1 : 0);
    positions_ = register_parameter("pos_embed", at::empty({1, tokens, config.dim}));
    patch_embed_ = register_module("patch_embed", std::make_shared<PatchEmbed>(config));
    torch::nn::ModuleList blocks;
    for (const double rate : drop_path_rates(config.drop_path, config.depth)) {
      blocks_.push_back(std::make_shared<VitBlock>(config, rate));
      blocks->push_back(blocks_.back());
    }
    register_module("blocks", blocks);
    norm_ = register_module(norm_name(), std::make_shared<LayerNorm>(config.dim, kEps));
    head_ = register_module("head", std::make_shared<Linear>(config.dim, classes));
  }

  std::vector<units::Unit> units() override {
    std::vector<units::Unit> result;
    result.reserve(blocks_.size() + 2);
    result.push_back(
        unit("stem", {"cls_token", "pos_embed", "patch_embed"},
             [this](const Flow& input, const Context&) -> Flow { return {embed(input[0])}; }));
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const std::string name = fmt::format("blocks.{}", i);
      result.push_back(unit(name, {name}, [this, i](const Flow& input, const Context&) -> Flow {
        return {blocks_[i]->forward(input[0])};
      }));
    }
    // The norm works token by token, and only the class token is read; the mean is taken before it.
    result.push_back(
        unit("head", {norm_name(), "head"}, [this](const Flow& input, const Context&) -> Flow {
          const Tensor read = class_token_.defined() ? input[0].select(1, 0) : input[0].mean(1);
          return {head_->forward(norm_->forward(read))};
        }));
    return result;
  }

  void initialise(const std::string& name, const Tensor& logical,
                  at::Generator generator) const override {
    if (name == "cls_token") {
      logical.normal_(0, 1e-6, std::move(generator));
    } else if (name == "pos_embed" || logical.dim() == 2) {
      logical.normal_(0, kStd, std::move(generator));
    } else if (name.ends_with(".bias") && !name.starts_with("patch_embed.")) {
      logical.zero_();
    } else {
      Model::initialise(name, logical, std::move(generator));
    }
  }

  // As timm's no_weight_decay().
  bool decays(const std::string& name) const override {
    return name != "cls_token" && name != "pos_embed";
  }

  std::vector<units::TensorRule> tensor_plan() const override {
    using enum units::TensorStyle;
    return {
        {.pattern = "blocks.*.norm*", .style = kEntry},
        {.pattern = "blocks.*.attn.qkv.*", .style = kColumn, .parts = 3, .together = head_dim_},
        {.pattern = "blocks.*.attn.mix", .style = kHead},
        {.pattern = "blocks.*.attn.proj.weight",
         .style = kRow,
         .dimension = 1,
         .together = head_dim_},
        {.pattern = "blocks.*.mlp.fc1.*", .style = kColumn},
        {.pattern = "blocks.*.mlp.drop1", .style = kHead},
        {.pattern = "blocks.*.mlp.fc2.weight", .style = kRow, .dimension = 1},
    };
  }

  units::WeightRules weight_rules() const override {
    return {.head = "head",
            .input = "patch_embed.proj.weight",
            .patch_positions = "pos_embed",
            .first_tokens = class_token_.defined() ? 1 : 0,
            .heads = heads_};
  }

  // As timm's group_matcher(): "norm" belongs to the last block, "fc_norm" to the head.
  std::vector<std::vector<std::string>> layers() override {
    std::vector<std::vector<std::string>> result = Model::layers();
    std::vector<std::string>& head = result.back();
    const auto norm = std::stable_partition(
        head.begin(), head.end(), [](const auto& name) { return !name.starts_with("norm."); });
    std::vector<std::string>& last_block = result[result.size() - 2];
    last_block.insert(last_block.end(), norm, head.end());
    head.erase(norm, head.end());
    return result;
  }

 private:
  // timm's names, which depend on the position of the norm before or after the mean.
  const char* norm_name() const { return class_token_.defined() ? "norm" : "fc_norm"; }

  // Images to tokens, the class token first.
  Tensor embed(const Tensor& images) {
    Tensor tokens = patch_embed_->forward(images);
    if (class_token_.defined()) {
      tokens = at::cat({class_token_.expand({images.size(0), -1, -1}), tokens}, 1);
    }
    return at::dropout(tokens + positions_, dropout_, is_training());
  }

  double dropout_;
  std::int64_t heads_, head_dim_;
  Tensor class_token_;  // undefined without a class token
  Tensor positions_;
  std::shared_ptr<PatchEmbed> patch_embed_;
  std::vector<std::shared_ptr<VitBlock>> blocks_;
  std::shared_ptr<LayerNorm> norm_;
  std::shared_ptr<Linear> head_;
};

std::shared_ptr<Model> make_vit(const recipe::Model& model, std::int64_t image_size) {
  const std::int64_t side = image_size / model.integer("patch_size");
  const VitConfig config{
      .channels = model.in_channels,
      .patch_size = model.integer("patch_size"),
      .dim = model.integer("dim"),
      .depth = model.integer("depth"),
      .heads = model.integer("heads"),
      .hidden = static_cast<std::int64_t>(static_cast<double>(model.integer("dim")) *
                                          model.number("mlp_ratio")),
      .patches = side * side,
      .dropout = model.number("dropout"),
      .drop_path = model.number("drop_path"),
      .layer_scale = model.number("layer_scale"),
      .class_token = model.text("pool") == "token",
  };
  return std::make_shared<Vit>(config, model.num_classes);
}

}  // namespace

// The models differ only in their defaults.
std::shared_ptr<Model> make_vit_tiny(const recipe::Model& model, std::int64_t image_size) {
  return make_vit(model, image_size);
}

std::shared_ptr<Model> make_vit_small(const recipe::Model& model, std::int64_t image_size) {
  return make_vit(model, image_size);
}

std::shared_ptr<Model> make_vit_base(const recipe::Model& model, std::int64_t image_size) {
  return make_vit(model, image_size);
}

std::shared_ptr<Model> make_vit_large(const recipe::Model& model, std::int64_t image_size) {
  return make_vit(model, image_size);
}

}  // namespace scaletrain::nn
