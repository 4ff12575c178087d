#include "lib/format/weights/wrapper_names.h"

#include <doctest/doctest.h>

#include <set>

using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

// The prefix of `names` in front of the tensors of a model.
std::string prefix_for(const std::set<std::string>& model, const std::vector<std::string>& names) {
  return common_wrapper(names,
                        [&](const std::string& rest) { return model.contains(rest) ? 1 : 0; });
}

}  // namespace

TEST_CASE("wrappers in front of a name are left out, in any order") {
  CHECK(without_wrappers("fc.weight") == "fc.weight");
  CHECK(without_wrappers("model.fc.weight") == "fc.weight");
  CHECK(without_wrappers("_forward_module.net._orig_mod.fc.weight") == "fc.weight");
  CHECK(without_wrappers("module.backbone._fsdp_wrapped_module.fc.weight") == "fc.weight");
  CHECK(without_wrappers("models.fc.weight") == "models.fc.weight");
  CHECK(without_wrappers("model.") == "model.");
}

TEST_CASE("the common prefix is the one whose rest are the names of the model") {
  const std::set<std::string> resnet{"conv1.weight", "fc.weight"};
  CHECK(prefix_for(resnet, {"conv1.weight", "fc.weight"}).empty());
  CHECK(prefix_for(resnet, {"net.conv1.weight", "net.fc.weight", "criterion.weight"}) == "net.");
  CHECK(prefix_for(resnet, {"model._orig_mod.conv1.weight", "model._orig_mod.fc.weight"}) ==
        "model._orig_mod.");
  CHECK(prefix_for(resnet, {"model.x", "net.y"}).empty());
  CHECK(prefix_for(resnet, {}).empty());
  // A model whose own names begin as a wrapper's does keeps them.
  const std::set<std::string> llama{"model.norm.weight", "model.embed.weight", "lm_head.weight"};
  CHECK(prefix_for(llama, {"model.norm.weight", "model.embed.weight", "lm_head.weight"}).empty());
  CHECK(prefix_for(llama, {"model.model.norm.weight", "model.model.embed.weight",
                           "model.lm_head.weight"}) == "model.");
}
