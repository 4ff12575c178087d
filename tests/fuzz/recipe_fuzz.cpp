// Any text as a recipe: a recipe, or an error of ours that says where it is wrong.
#include "lib/core/error.h"
#include "lib/recipe/load.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  // Both name files: what lies there is not the recipe's text.
  if (text.find("extends") != std::string::npos || text.find("worker") != std::string::npos) {
    return 0;
  }
  try {
    static_cast<void>(scaletrain::recipe::parse_recipe(text, "r.json"));
  } catch (const scaletrain::core::Error&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {
      R"({"model": {"name": "mlp", "num_classes": 10}, "data": {"train": {"shards": "a.tar"}},
          "optimizer": {"name": "sgd", "lr": 0.1}, "epochs": 1, "ema": {}, "sync": "diloco"})",
      R"({"model": {"name": "gpt2", "positions": 16}, "data": {"train": {"tokens": "a.bin"}},
          "optimiser": {"name": "adamw", "lr": 1e-3}, "steps": 4, "swa": {}, "compress": "bf16",
          "parallel": {"tensor": 2, "sequence": true}})",
      R"({"model": {"name": "mixtral", "experts": 4}, "data": {"train": {"tokens": "a.bin"}},
          "optimizer": {"name": "muon", "lr": 0.02}, "steps": 4, "clip": {"norm": 1},
          "parallel": {"expert": 2, "shard": 2}, "batch": {"global": 8, "per_device": 2}})"};
}
