#include "lib/exchange/import_flags.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace scaletrain::exchange {

void add_import_flags(CLI::App& command, ImportRequest& request) {
  command
      .add_option("SOURCE", request.source,
                  "Weights to import: a folder of timm, torchvision or Hugging Face, an export of "
                  "scaletrain, or a safetensors or PyTorch file.")
      ->required();
  command.add_option("OUT", request.out, "New folder, with the layout of a run folder.")
      ->required();
  command.add_option("--model", request.model,
                     "Model name as in a recipe, for weights without a config.json.");
  command.add_option("--part", request.part,
                     "Key of a PyTorch file that holds the model, such as `ema`. Default: a known "
                     "key such as `state_dict`.");
  command
      .add_option("--set", request.settings,
                  "Set a key of the new recipe, for example model.depth=6 or data.image_size=64. "
                  "Repeatable.")
      ->allow_extra_args(false);
  command.add_option("--worker", request.worker,
                     "Path of a worker program of your own, with its models.");
}

}  // namespace scaletrain::exchange
