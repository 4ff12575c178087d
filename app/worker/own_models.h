// Adds the rows of a custom .def file to a worker.
//
// SCALETRAIN_OWN_MODELS, set by scaletrain_add_worker(), names that file. Its rows have the form of
// lib/recipe/catalog/models.def, and the factories make_NAME are in namespace scaletrain::nn.
// Include this header once in a program, in the file with main().
#pragma once

#include <cstdint>
#include <memory>

#include "app/worker/worker_main.h"
#include "lib/recipe/catalog/row_keys.h"

namespace scaletrain::nn {

#define SCALETRAIN_MODEL(name, ...) \
  std::shared_ptr<Model> make_##name(const recipe::Model& model, std::int64_t image_size);
#include SCALETRAIN_OWN_MODELS
#undef SCALETRAIN_MODEL

}  // namespace scaletrain::nn

namespace scaletrain::recipe {

inline app::Additions own_additions() {
  return {{
#define SCALETRAIN_MODEL(name, help, ...) \
  app::OwnModel{Row{#name, help, {__VA_ARGS__}}, nn::make_##name},
#include SCALETRAIN_OWN_MODELS
#undef SCALETRAIN_MODEL
  }};
}

}  // namespace scaletrain::recipe

namespace scaletrain::app {

inline Additions own_models() { return recipe::own_additions(); }

}  // namespace scaletrain::app
