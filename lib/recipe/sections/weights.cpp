#include "lib/recipe/sections/weights.h"

#include <memory>

#include "lib/recipe/catalog/paths.h"
#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

TypePtr describe(std::optional<Weights>& value) {
  return optional(value, [](Weights& inner) {
    constexpr const char* kNames = "a name of tensors, with * for any characters";
    auto keys = std::make_unique<Object>();
    keys->require("path", path(inner.path),
                  "Weights file (safetensors, .pt, .pth, .bin or an index of several), timm, "
                  "torchvision or Hugging Face folder, checkpoint or run.")
        .add("part", text(inner.part, "a key of the file, as model_ema"),
             "Key of a torch.save file that holds the state dict, for example model_ema. Default: "
             "found automatically.")
        .add("new_head", flag(inner.new_head),
             "Keeps the head randomly initialized. Default: false; a head with another number of "
             "classes is initialized anyway.")
        .add("allow_missing", texts(inner.allow_missing, kNames),
             "Patterns of model tensors that may be missing in the file; they stay initialized. "
             "Default: none.")
        .add("allow_unused", texts(inner.allow_unused, kNames),
             "Patterns of file tensors that may stay unused. Default: none.")
        .add("allow_other", texts(inner.allow_other, "a key of the model, as rope_theta"),
             "Keys that may differ from config.json or the checkpoint's recipe, for example "
             "rope_theta. "
             "Also mean, std, eval_filter, crop, precision, num_classes and class_names. Default: "
             "none.")
        .set_short_for("path");
    return keys;
  });
}

}  // namespace scaletrain::recipe
