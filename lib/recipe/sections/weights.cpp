#include "lib/recipe/sections/weights.h"

#include <memory>

#include "lib/recipe/paths.h"
#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

TypePtr describe(std::optional<Weights>& value) {
  return optional(value, [](Weights& inner) {
    constexpr const char* kNames = "a name of tensors, with * for any characters";
    auto keys = std::make_unique<Object>();
    keys->require("path", path(inner.path),
                  "a safetensors, .pt, .pth or .bin file, an index of several, a folder in timm's, "
                  "torchvision's or Hugging Face's layout, a checkpoint or a run")
        .add("part", text(inner.part, "a key of the file, as model_ema"),
             "of a file of torch.save; without it what is the model's")
        .add("new_head", flag(inner.new_head),
             "the head stays as initialised, whatever the file has; without it where the number of "
             "classes differs")
        .add("allow_missing", texts(inner.allow_missing, kNames),
             "tensors of the model that may be missing: they stay as initialised")
        .add("allow_unused", texts(inner.allow_unused, kNames),
             "tensors of the file that may be left")
        .add("allow_other", texts(inner.allow_other, "a key of the model, as rope_theta"),
             "may differ from what config.json or the checkpoint's recipe says")
        .set_short_for("path");
    return keys;
  });
}

}  // namespace scaletrain::recipe
