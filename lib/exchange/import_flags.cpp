#include "lib/exchange/import_flags.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace scaletrain::exchange {

void add_import_flags(CLI::App& command, ImportRequest& request) {
  command
      .add_option("SOURCE", request.source,
                  "a folder of timm, torchvision, Hugging Face or an export of ours; a safetensors "
                  "or PyTorch file")
      ->required();
  command.add_option("OUT", request.out, "the new folder, laid out as a run's")->required();
  command.add_option("--model", request.model,
                     "the model of weights without a config.json: a name as in a recipe");
  command.add_option("--part", request.part,
                     "the key of a PyTorch file below which the model lies (by default what is "
                     "known as a model's)");
  command
      .add_option("--set", request.settings,
                  "KEY=VALUE of the recipe that is made, such as model.depth=6 or "
                  "data.image_size=64; may be repeated")
      ->allow_extra_args(false);
  command.add_option("--worker", request.worker, "another worker program");
}

}  // namespace scaletrain::exchange
