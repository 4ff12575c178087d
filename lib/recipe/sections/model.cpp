#include "lib/recipe/sections/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "lib/recipe/catalog/component.h"
#include "lib/recipe/catalog/task.h"

namespace scaletrain::recipe {
namespace {

constexpr std::int64_t kMostUnits = 1 << 30;  // units of a key without an end: more than all stages

// Returns "batch", "sync_batch", "group", or "" if the row has no BatchNorm. Without a key for the
// norm, it is BatchNorm.
std::string norm_of(const Model& model) {
  if (!model.row().has_rule(Rule::Kind::kBatchNorm)) return "";
  return model.options.contains("norm") ? model.text("norm") : "batch";
}

}  // namespace

TypePtr describe(Model& value) {
  return component(value, value.catalog->models, [&value](Object& keys, const Row* row) {
    keys.add("weights", describe(value.weights),
             "Pretrained weights to start from, for fine-tuning. Default: random initialization. A "
             "resumed run reads its checkpoint instead.")
        .add("freeze", texts(value.freeze, "a name of parameters, with * for any characters"),
             "Frozen parameters, for example `layer1.*`. Default: none. They are not trained; "
             "frozen BatchNorm layers use their running statistics and keep them.");
    if (row != nullptr && find_task(row->task)->reads != TaskRow::Reads::kImages) return;
    keys.require("num_classes", integer(value.num_classes, from(1).to(kMostCount)),
                 "Number of classes, the outputs of the classification head. For example 1000 for "
                 "ImageNet-1k.")
        .add("in_channels", integer(value.in_channels, from(1).to(3)),
             "Input channels: 3 for RGB, 1 for grayscale as Pillow's \"L\". Default: 3.")
        .add("linear_probe", flag(value.linear_probe),
             "Linear probing: freezes the backbone and trains only the head. Default: false.");
  });
}

void check_channels(const Model& model, const Node& tree, Problems& problems) {
  if (model.in_channels != 2) return;
  problems.add(written_at(tree, {"model", "in_channels"}), "/model/in_channels",
               "2 is neither 1 nor 3", "use 3 for colours, 1 for brightness alone");
}

std::optional<std::int64_t> units_of(const Model& model) {
  for (const Rule& rule : model.row().rules) {
    if (rule.kind == Rule::Kind::kOneUnit) return 1;
    if (rule.kind != Rule::Kind::kUnits) continue;
    const std::int64_t fixed = std::stoll(rule.other);
    if (rule.key.empty()) return fixed;
    return fixed + std::min(model.integer(rule.key), kMostUnits);
  }
  return std::nullopt;
}

bool reads_tokens(const Model& model) {
  return find_task(model.row().task)->reads == TaskRow::Reads::kTokens;
}

bool uses_batch_norm(const Model& model) {
  const std::string norm = norm_of(model);
  return !norm.empty() && norm != "group";
}

void check_image_size(const Model& model, WrittenSize images, const Node& tree,
                      Problems& problems) {
  const auto report = [&](const Rule& rule, std::string what) {
    problems.add(written_at(tree, {"model", rule.key.c_str()}), "/model/" + rule.key,
                 fmt::format("{} {}, which is {}", std::move(what), images.pointer, images.size),
                 "change one of them");
  };
  for (const Rule& rule : model.row().rules) {
    if (rule.kind == Rule::Kind::kDividesImageSize) {
      const std::int64_t value = model.integer(rule.key);
      if (images.size % value != 0) report(rule, fmt::format("{} does not divide", value));
    } else if (rule.kind == Rule::Kind::kFitsImageSize) {
      const std::int64_t value = model.integer(rule.key), times = std::stoll(rule.other);
      if (images.size < value * times) {
        report(rule, fmt::format("{} times {} is more than", times, value));
      }
    }
  }
}

std::string batch_norm_advice(const Model& model, const BatchPlan& plan) {
  const std::string norm = norm_of(model);
  if (plan.accumulate <= 1 || norm.empty() || norm == "group") return "";
  return fmt::format(
      "/model/norm: BatchNorm normalises by {} samples at a time{}, not by the step's {}: use "
      "\"group\", which needs no other sample{}",
      plan.per_device, norm == "batch" ? "" : " of each rank", plan.global,
      norm == "batch" ? ", or \"sync_batch\", which takes those of all ranks together" : "");
}

// For small images the last feature maps have one pixel: BatchNorm cannot compute a deviation from
// one sample.
bool needs_two_samples(const Model& model, std::int64_t image_size) {
  return uses_batch_norm(model) && image_size <= kBatchNormStride;
}

void check_batch_norm(const Model& model, std::int64_t per_device, std::int64_t image_size,
                      const Node& tree, Problems& problems) {
  if (per_device != 1 || !needs_two_samples(model, image_size)) return;
  problems.add(
      written_at(tree, {"batch", "per_device"}), "/batch/per_device",
      fmt::format("is 1, which leaves BatchNorm one value for each channel with images of {}",
                  image_size),
      "use 2 or more, with a smaller /batch/accumulate for the same global batch, or "
      "\"norm\": \"group\" in /model");
}

}  // namespace scaletrain::recipe
