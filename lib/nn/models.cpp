#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <limits>

#include "lib/core/philox.h"
#include "lib/core/text/hash.h"
#include "lib/nn/model.h"

namespace scaletrain::nn {

// Each is in a file of lib/nn/models/, a family in one; a row without its factory does not link.
#define SCALETRAIN_MODEL(name, ...) \
  std::shared_ptr<Model> make_##name(const recipe::Model& model, std::int64_t image_size);
#include "lib/recipe/catalog/models.def"

const Factories& built_in_factories() {
  static const Factories result = [] {
    Factories models("model");
#define SCALETRAIN_MODEL(name, ...) models.add(#name, make_##name);
#include "lib/recipe/catalog/models.def"
    return models;
  }();
  return result;
}

namespace {

// LibTorch's layers draw from the process's generator as they are made: puts it back as it was.
class UntouchedGenerator {
 public:
  UntouchedGenerator()
      : generator_(at::globalContext().defaultGenerator(at::kCPU)),
        before_(generator_.get_state()) {}
  ~UntouchedGenerator() { generator_.set_state(before_); }
  UntouchedGenerator(const UntouchedGenerator&) = delete;
  UntouchedGenerator& operator=(const UntouchedGenerator&) = delete;

 private:
  at::Generator generator_;
  at::Tensor before_;
};

// Initial value of the parameter `name`. A tensor that the model's rule leaves out stays NaN, which
// ends training at its first step.
at::Tensor initial_value(const Model& model, const std::string& name, at::IntArrayRef shape,
                         std::uint64_t seed) {
  core::Philox draw(seed, core::DrawPurpose::kInit, 0, core::xxh3_64(name));
  const at::Tensor logical = at::full(shape, std::numeric_limits<float>::quiet_NaN());
  model.initialise(name, logical, at::detail::createCPUGenerator(draw.next_u64()));
  return logical;
}

}  // namespace

std::shared_ptr<Model> make_blank_model(const recipe::Model& model, std::int64_t image_size,
                                        const Factories& factories) {
  const Factory factory = factories.find(model.name);
  const UntouchedGenerator untouched;
  return factory(model, image_size);
}

void fill(Model& blank, std::uint64_t seed, const KeepPart& keep) {
  const at::NoGradGuard no_grad;
  for (const auto& item : blank.named_parameters()) {
    at::Tensor parameter = item.value();
    const at::Tensor logical = initial_value(blank, item.key(), parameter.sizes(), seed);
    const at::Tensor part = keep ? keep(item.key(), logical) : logical;
    if (part.sizes() != parameter.sizes()) parameter.set_data(at::empty_like(part));
    parameter.copy_(part);
  }
}

std::shared_ptr<Model> make_model(const recipe::Model& model, std::int64_t image_size,
                                  std::uint64_t seed, const Factories& factories) {
  std::shared_ptr<Model> made = make_blank_model(model, image_size, factories);
  fill(*made, seed);
  return made;
}

}  // namespace scaletrain::nn
