#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include "lib/core/registry.h"
#include "lib/nn/model.h"

namespace scaletrain::nn {

// Each is in a file of lib/nn/models/ (the three ResNets in resnet.cpp); a row without one does not
// link.
#define SCALETRAIN_MODEL(name, ...) \
  std::shared_ptr<Model> make_##name(const recipe::Model& model, std::int64_t image_size);
#include "lib/recipe/models.def"

namespace {

using Factory = std::shared_ptr<Model> (*)(const recipe::Model&, std::int64_t);

const core::Registry<Factory>& registry() {
  static const core::Registry<Factory> result = [] {
    core::Registry<Factory> models("model");
#define SCALETRAIN_MODEL(name, ...) models.add(#name, make_##name);
#include "lib/recipe/models.def"
    return models;
  }();
  return result;
}

// LibTorch's layers draw from the process's generator: seeds it, and puts it back as it was.
class SeededGenerator {
 public:
  explicit SeededGenerator(std::uint64_t seed)
      : generator_(at::globalContext().defaultGenerator(at::kCPU)),
        before_(generator_.get_state()) {
    generator_.set_current_seed(seed);
  }
  ~SeededGenerator() { generator_.set_state(before_); }
  SeededGenerator(const SeededGenerator&) = delete;
  SeededGenerator& operator=(const SeededGenerator&) = delete;

 private:
  at::Generator generator_;
  at::Tensor before_;
};

}  // namespace

std::shared_ptr<Model> make_model(const recipe::Model& model, std::int64_t image_size,
                                  std::uint64_t seed) {
  const Factory factory = registry().find(model.name);
  const SeededGenerator seeded(seed);
  return factory(model, image_size);
}

}  // namespace scaletrain::nn
