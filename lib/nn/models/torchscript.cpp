// A model that was written in Python: a TorchScript file, made by torch.jit.script or
// torch.jit.trace.
//
// Its parameters and buffers keep their own names and start from the file's values; those that the
// file marks as needing no gradient are kept as buffers. It is one unit.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/script.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/text/placeholder.h"
#include "lib/nn/model.h"

namespace scaletrain::nn {
namespace {

using units::Context;
using units::Flow;

constexpr const char* kHowMade =
    "write it with torch.jit.script(model).save(FILE), or torch.jit.trace, by this version of "
    "PyTorch "
    "or an older one";

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// The last lines of an interpreter error describe the error, the earlier ones its place.
std::string reason_of(const std::string& text) {
  constexpr std::string_view kBegin = "RuntimeError: ";
  const std::size_t found = text.rfind(kBegin);
  return first_line(found == std::string::npos ? text : text.substr(found + kBegin.size()));
}

// Precisions start from fp32; counters stay whole numbers.
void as_float(at::Tensor& tensor) {
  if (tensor.is_floating_point()) tensor.set_data(tensor.detach().to(at::kFloat));
}

torch::jit::Module load_script(const std::string& file) {
  try {
    torch::jit::Module module = torch::jit::load(file, at::kCPU);
    for (at::Tensor tensor : module.parameters()) as_float(tensor);
    for (at::Tensor tensor : module.buffers()) as_float(tensor);
    return module;
  } catch (const c10::Error& error) {
    core::refuse_placeholder_file(file);
    throw core::DataError(file,
                          fmt::format("is not a TorchScript file that can be read: {}",
                                      first_line(error.what_without_backtrace())),
                          kHowMade);
  }
}

class TorchScript : public Model {
 public:
  explicit TorchScript(const std::string& file) : script_(load_script(file)) {
    std::map<const void*, std::string> seen;
    for (const auto& item : script_.named_parameters()) {
      if (!item.value.requires_grad()) {
        holder(item.name).register_buffer(own_name(item.name), item.value);
        continue;
      }
      const auto [other, is_new] = seen.emplace(item.value.const_data_ptr(), item.name);
      if (!is_new) {
        throw core::DataError(file,
                              fmt::format("{} and {} are one tensor", other->second, item.name),
                              "TorchScript does not keep such a tie; write the model with one "
                              "parameter for both uses");
      }
      holder(item.name).register_parameter(own_name(item.name), item.value);
    }
    for (const auto& item : script_.named_buffers()) {
      holder(item.name).register_buffer(own_name(item.name), item.value);
    }
    if (seen.empty()) {
      throw core::DataError(file, "has no parameters to train",
                            "save the model itself, not a frozen one (torch.jit.freeze)");
    }
  }

  std::vector<units::Unit> units() override {
    units::Unit whole{
        .name = "script",
        .tensors = named_parameters().keys(),
        .run = [this](const Flow& input, const Context&) -> Flow { return {run(input[0])}; }};
    for (const std::string& name : named_buffers().keys()) whole.tensors.push_back(name);
    return {whole};
  }

  // The file's values.
  void initialise(const std::string& name, const at::Tensor& logical,
                  at::Generator /*generator*/) const override {
    logical.copy_(named_parameters()[name]);
  }

  void train(bool on) override {
    Model::train(on);
    script_.train(on);
  }

 private:
  // The optimizing executor records other operations from its second run on: gradients would change
  // their bits between steps. The setting belongs to a thread.
  at::Tensor run(const at::Tensor& input) {
    const torch::jit::GraphOptimizerEnabledGuard plain(false);
    return script_.forward({input}).toTensor();
  }

  // Returns the submodule for "layer.0.weight", here "layer.0", and makes it if it is missing.
  // Names in a module have no dots.
  Module& holder(const std::string& name) {
    Module* module = this;
    std::size_t begin = 0;
    for (std::size_t dot = 0; (dot = name.find('.', begin)) != std::string::npos; begin = dot + 1) {
      const std::string part = name.substr(begin, dot - begin);
      const auto children = module->named_children();
      const auto* const child = children.find(part);
      module = child != nullptr ? child->get()
                                : module->register_module(part, std::make_shared<Module>()).get();
    }
    return *module;
  }

  static std::string own_name(const std::string& name) { return name.substr(name.rfind('.') + 1); }

  torch::jit::Module script_;
};

// A traced model may have the size of its example's batch in it, which would only be seen at an
// epoch's last batch; another number of classes would be an index out of range.
void check_shapes(TorchScript& model, const std::string& file, const recipe::Model& recipe,
                  std::int64_t image_size) {
  const std::int64_t classes = recipe.num_classes;
  const at::NoGradGuard no_grad;
  model.eval();
  for (const std::int64_t batch : {2, 3}) {
    const std::vector<std::int64_t> input = {batch, recipe.in_channels, image_size, image_size};
    std::string found;
    try {
      const at::Tensor output = model.forward(at::zeros(input));
      if (output.sizes() == at::IntArrayRef({batch, classes})) continue;
      found = fmt::format("the output is [{}]", fmt::join(output.sizes(), ", "));
    } catch (const std::exception& error) {
      found = "forward failed: " + reason_of(error.what());
    }
    throw core::DataError(
        file,
        fmt::format("for images [{}] logits [{}, {}] are expected, and {}", fmt::join(input, ", "),
                    batch, classes, found),
        "a traced model may be fixed to the batch size of its example: use torch.jit.script, or -1 "
        "in reshapes; /model/num_classes, /model/in_channels and "
        "/data/image_size must fit");
  }
  model.train(true);
}

}  // namespace

std::shared_ptr<Model> make_torchscript(const recipe::Model& model, std::int64_t image_size) {
  const std::string& file = model.text("file");
  auto made = std::make_shared<TorchScript>(file);
  check_shapes(*made, file, model, image_size);
  return made;
}

}  // namespace scaletrain::nn
