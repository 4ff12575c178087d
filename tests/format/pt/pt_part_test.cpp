#include "lib/format/pt/pt_part.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/core/error.h"

using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

// Tensors of these names; a "/" ends the first key where that is a container.
std::vector<PtTensor> named_tensors(const std::vector<std::string>& names) {
  std::vector<PtTensor> tensors;
  for (std::string name : names) {
    PtTensor& tensor = tensors.emplace_back();
    const std::size_t slash = name.find('/');
    tensor.top_bytes = slash == std::string::npos ? 0 : slash;
    if (slash != std::string::npos) name[slash] = '.';
    tensor.name = name;
  }
  return tensors;
}

// "PART STRIPPED names: ... others: ..."
std::string chosen(const std::vector<std::string>& names, const std::string& wanted = "") {
  const std::vector<PtTensor> tensors = named_tensors(names);
  try {
    const PtPart part = choose_pt_part(tensors, "a.pt", wanted);
    std::vector<std::string> found;
    for (const auto& [name, tensor] : part.tensors) {
      CHECK(tensor->name.ends_with(name));
      found.push_back(name);
    }
    return fmt::format("{}|{}|{}|{}", part.name, part.stripped, fmt::join(found, " "),
                       fmt::join(part.others, " "));
  } catch (const core::CheckpointError& error) {
    return error.found();
  }
}

}  // namespace

TEST_CASE("the part that is a model's is taken") {
  CHECK(chosen({"fc.bias", "fc.weight"}) == "||fc.bias fc.weight|");
  CHECK(chosen({"model.embed", "model.norm"}) == "||model.embed model.norm|");
  CHECK(chosen({"optimizer/0.exp", "state_dict/a"}) == "state_dict||a|optimizer");
  CHECK(chosen({"model/a", "state_dict/b"}) == "state_dict||b|model");
  CHECK(chosen({"model_ema/a", "model/b"}) == "model||b|model_ema");
  CHECK(chosen({"best", "model/b"}) == "model||b|");
  CHECK(chosen({"generator/b"}) == "generator||b|");
  CHECK(chosen({"weight", "head/b"}) == "||weight head.b|");
  CHECK(chosen({"ema/module.a", "optimizer/b"}) == "ema|module.|a|optimizer");
  CHECK(chosen({"one/a", "two/b"}, "two") == "two||b|one");
  CHECK(chosen({"one/two.a", "one/three"}, "one.two") == "one.two||a|");
}

TEST_CASE("what wrapped the model is left out of the names") {
  CHECK(chosen({"module.a", "module.b.c"}) == "|module.|a b.c|");
  CHECK(chosen({"_orig_mod.module.a"}) == "|_orig_mod.module.|a|");
  CHECK(chosen({"module.a", "b"}) == "||module.a b|");
  CHECK(chosen({"module."}) == "||module.|");
}

TEST_CASE("a part that is not there, or not known, is an error") {
  CHECK(chosen({}) == "holds no tensor");
  CHECK(chosen({"one/a", "two/b"}) ==
        "has tensors below one, two, and none of these is a known key of a model");
  CHECK(chosen({"one/a"}, "two") == "holds no tensor below \"two\"");
  CHECK(chosen({"one.a"}, "one") == "holds no tensor below \"one\"");  // a key with a dot
}
