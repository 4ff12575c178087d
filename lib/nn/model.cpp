#include "lib/nn/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/core/error.h"
#include "lib/nn/layers/layer.h"

namespace scaletrain::nn {

at::Tensor Model::forward(const at::Tensor& input, const units::Context& context) {
  return units::run(units(), {input}, context).front();
}

void Model::initialise(const std::string& name, const at::Tensor& logical,
                       at::Generator generator) const {
  const std::size_t dot = name.rfind('.');
  if (dot != std::string::npos) {
    const auto modules = named_modules("", false);
    const auto* const found = modules.find(name.substr(0, dot));
    if (const auto* layer = found ? dynamic_cast<const Layer*>(found->get()) : nullptr) {
      return layer->initialise(name.substr(dot + 1), logical, std::move(generator));
    }
  }
  throw core::InternalError("model", fmt::format("nothing fills the parameter {}", name),
                            "its model's initialise() must");
}

std::vector<std::vector<std::string>> Model::layers() {
  std::vector<std::vector<std::string>> result;
  for (const units::Unit& unit : units()) result.push_back(unit.tensors);
  return result;
}

units::Unit Model::unit(std::string name, const std::vector<std::string>& paths,
                        std::function<units::Flow(units::Flow, const units::Context&)> run) const {
  units::Unit result{.name = std::move(name), .tensors = {}, .run = std::move(run)};
  const auto add = [&](const std::string& tensor) {
    const bool belongs = std::any_of(paths.begin(), paths.end(), [&](const std::string& path) {
      return tensor == path || tensor.starts_with(path + ".");
    });
    if (belongs) result.tensors.push_back(tensor);
  };
  for (const auto& item : named_parameters()) add(item.key());
  for (const auto& item : named_buffers()) add(item.key());
  return result;
}

}  // namespace scaletrain::nn
