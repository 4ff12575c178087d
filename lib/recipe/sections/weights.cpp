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
                  "File (.safetensors, .pt, .pth, .bin, or the index of several), folder of timm, "
                  "torchvision or Hugging Face, checkpoint, or run folder.")
        .add("part", text(inner.part, "a key of the file, as model_ema"),
             "Key under which a torch.save file holds the state dict, for example model_ema. "
             "Default: found automatically.")
        .add("new_head", flag(inner.new_head),
             "Leaves the head randomly initialized instead of loading it. Default: false; a head "
             "with another number of classes is never loaded.")
        .add("allow_missing", texts(inner.allow_missing, kNames),
             "Model tensors that may be missing in the file, for example `head.*`; they stay "
             "randomly initialized. Default: none; a missing tensor is an error.")
        .add("allow_unused", texts(inner.allow_unused, kNames),
             "Tensors of the file that the model may lack, for example `head_dist.*`. Default: "
             "none; an unused tensor is an error.")
        .add("allow_other", texts(inner.allow_other, "a key of the model, as rope_theta"),
             "Settings that may differ from config.json or the checkpoint's recipe. For example "
             "rope_theta, mean, std, eval_filter, crop, precision, num_classes, class_names or "
             "tokenizer. Default: none; a difference is a warning or an error.")
        .set_short_for("path");
    return keys;
  });
}

}  // namespace scaletrain::recipe
