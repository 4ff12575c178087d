#include "lib/recipe/sections/model.h"

#include <fmt/format.h>

#include "lib/recipe/component.h"
#include "lib/recipe/task.h"

namespace scaletrain::recipe {

TypePtr describe(Model& value) {
  return component(value, value.catalog->models, [&value](Object& keys, const Row* row) {
    if (row != nullptr && find_task(row->task)->reads != TaskRow::Reads::kImages) return;
    keys.require("num_classes", integer(value.num_classes, from(1).to(kMostCount)),
                 "number of classes");
  });
}

bool reads_tokens(const Model& model) {
  return find_task(model.row().task)->reads == TaskRow::Reads::kTokens;
}

void check_image_size(const Model& model, std::int64_t image_size, const Node& tree,
                      Problems& problems) {
  for (const Rule& rule : model.row().rules) {
    if (rule.kind != Rule::Kind::kDividesImageSize) continue;
    const std::int64_t value = model.integer(rule.key);
    if (image_size % value == 0) continue;
    problems.add(written_at(tree, {"model", rule.key.c_str()}), "/model/" + rule.key,
                 fmt::format("{} does not divide /data/image_size, which is {}", value, image_size),
                 "change one of them");
  }
}

// The last maps of a small image have one value: of one sample BatchNorm has no deviation.
void check_batch_norm(const Model& model, std::int64_t per_device, std::int64_t image_size,
                      const Node& tree, Problems& problems) {
  if (!model.row().has_rule(Rule::Kind::kBatchNorm)) return;
  if (per_device > 1 || image_size > kBatchNormStride) return;
  problems.add(written_at(tree, {"batch", "per_device"}), "/batch/per_device",
               fmt::format("is 1, of which BatchNorm cannot compute a deviation in images of {}",
                           image_size),
               "use 2 or more, with a smaller /batch/accumulate for the same global batch");
}

}  // namespace scaletrain::recipe
