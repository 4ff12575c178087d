// A vision transformer for small images, with the tensor names and the initialisation of timm's
// VisionTransformer.
//
// Dosovitskiy et al., "An Image is Worth 16x16 Words", 2020, section 3.1; dropout as in its
// appendix B.1: after every dense layer but the query-key-value product and the head, and after the
// position embedding.
#include <torch/nn/functional/activation.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include "lib/nn/model.h"

namespace scaletrain::nn {
namespace {

using torch::Tensor;
using torch::nn::LayerNorm;
using torch::nn::Linear;

// timm truncates at -2 and 2, a hundred deviations away: an ordinary normal.
constexpr double kStd = 0.02;

struct VitConfig {
  std::int64_t patch_size = 0, dim = 0, heads = 0, hidden = 0;
  double dropout = 0;
};

Linear make_linear(std::int64_t in, std::int64_t out) {
  Linear linear(in, out);
  torch::nn::init::normal_(linear->weight, 0, kStd);
  torch::nn::init::zeros_(linear->bias);
  return linear;
}

LayerNorm make_norm(std::int64_t dim) {
  return LayerNorm(torch::nn::LayerNormOptions({dim}).eps(1e-6));
}

class Attention : public torch::nn::Module {
 public:
  explicit Attention(const VitConfig& config)
      : config_(config),
        qkv_(register_module("qkv", make_linear(config.dim, 3 * config.dim))),
        proj_(register_module("proj", make_linear(config.dim, config.dim))) {}

  // [batch, tokens, dim] -> the same.
  Tensor forward(const Tensor& input) {
    const std::int64_t batch = input.size(0), tokens = input.size(1);
    const Tensor qkv = qkv_(input)
                           .view({batch, tokens, 3, config_.heads, config_.dim / config_.heads})
                           .permute({2, 0, 3, 1, 4});  // [3, batch, heads, tokens, head_dim]
    const Tensor mixed = at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2]);
    const Tensor output = proj_(mixed.transpose(1, 2).reshape({batch, tokens, config_.dim}));
    return at::dropout(output, config_.dropout, is_training());
  }

 private:
  VitConfig config_;
  Linear qkv_, proj_;
};

class Mlp : public torch::nn::Module {
 public:
  explicit Mlp(const VitConfig& config)
      : dropout_(config.dropout),
        fc1_(register_module("fc1", make_linear(config.dim, config.hidden))),
        fc2_(register_module("fc2", make_linear(config.hidden, config.dim))) {}

  Tensor forward(const Tensor& input) {
    const Tensor hidden = at::dropout(at::gelu(fc1_(input)), dropout_, is_training());
    return at::dropout(fc2_(hidden), dropout_, is_training());
  }

 private:
  double dropout_;
  Linear fc1_, fc2_;
};

class Block : public torch::nn::Module {
 public:
  explicit Block(const VitConfig& config)
      : norm1_(register_module("norm1", make_norm(config.dim))),
        attention_(register_module("attn", std::make_shared<Attention>(config))),
        norm2_(register_module("norm2", make_norm(config.dim))),
        mlp_(register_module("mlp", std::make_shared<Mlp>(config))) {}

  Tensor forward(const Tensor& input) {
    const Tensor attended = input + attention_->forward(norm1_(input));
    return attended + mlp_->forward(norm2_(attended));
  }

 private:
  LayerNorm norm1_;
  std::shared_ptr<Attention> attention_;
  LayerNorm norm2_;
  std::shared_ptr<Mlp> mlp_;
};

// Patches as tokens: a convolution whose stride is its kernel, under timm's name
// "patch_embed.proj".
class PatchEmbed : public torch::nn::Module {
 public:
  explicit PatchEmbed(const VitConfig& config)
      : proj_(register_module(
            "proj", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, config.dim, config.patch_size)
                                          .stride(config.patch_size)))) {}

  // [batch, 3, size, size] -> [batch, patches, dim], row by row.
  Tensor forward(const Tensor& input) { return proj_(input).flatten(2).transpose(1, 2); }

 private:
  torch::nn::Conv2d proj_;
};

class Vit : public Model {
 public:
  Vit(const VitConfig& config, std::int64_t depth, std::int64_t patches, std::int64_t classes)
      : dropout_(config.dropout),
        class_token_(register_parameter("cls_token", torch::empty({1, 1, config.dim}))),
        positions_(register_parameter("pos_embed", torch::empty({1, patches + 1, config.dim}))),
        patch_embed_(register_module("patch_embed", std::make_shared<PatchEmbed>(config))) {
    torch::nn::init::normal_(positions_, 0, kStd);
    torch::nn::init::normal_(class_token_, 0, 1e-6);
    torch::nn::Sequential blocks;
    for (std::int64_t i = 0; i < depth; ++i) blocks->push_back(Block(config));
    blocks_ = register_module("blocks", blocks);
    norm_ = register_module("norm", make_norm(config.dim));
    head_ = register_module("head", make_linear(config.dim, classes));
  }

  Tensor forward(const Tensor& input) override {
    const Tensor patches = patch_embed_->forward(input);
    Tensor tokens = at::cat({class_token_.expand({input.size(0), -1, -1}), patches}, 1);
    tokens = at::dropout(tokens + positions_, dropout_, is_training());
    tokens = blocks_->forward(tokens);
    // The norm works token by token, and only the class token is read.
    return head_(norm_(tokens.select(1, 0)));
  }

  // As timm's no_weight_decay().
  bool decays(const std::string& name) const override {
    return name != "cls_token" && name != "pos_embed";
  }

 private:
  double dropout_;
  Tensor class_token_, positions_;
  std::shared_ptr<PatchEmbed> patch_embed_;
  torch::nn::Sequential blocks_{nullptr};
  LayerNorm norm_{nullptr};
  Linear head_{nullptr};
};

}  // namespace

std::shared_ptr<Model> make_vit_tiny(const recipe::Model& model, std::int64_t image_size) {
  const VitConfig config{
      .patch_size = model.integer("patch_size"),
      .dim = model.integer("dim"),
      .heads = model.integer("heads"),
      .hidden = static_cast<std::int64_t>(static_cast<double>(model.integer("dim")) *
                                          model.number("mlp_ratio")),
      .dropout = model.number("dropout"),
  };
  const std::int64_t side = image_size / config.patch_size;
  return std::make_shared<Vit>(config, model.integer("depth"), side * side, model.num_classes);
}

}  // namespace scaletrain::nn
