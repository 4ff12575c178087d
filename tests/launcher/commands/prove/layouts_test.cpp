#include "launcher/commands/prove/layouts.h"

#include <doctest/doctest.h>

#include <set>

namespace scaletrain::launcher {

TEST_CASE("each parallel strategy is compared with one rank, under a name of its own") {
  std::set<std::string> names;
  bool has_shard = false, has_tensor = false, has_pipeline = false, has_context = false,
       has_expert = false;
  for (const ProvenLayout& layout : proven_layouts()) {
    CAPTURE(layout.name);
    CHECK(names.insert(layout.name).second);
    CHECK((layout.ranks == 2 || layout.ranks == 4));
    CHECK(layout.ranks % layout.readers() == 0);
    has_shard = has_shard || layout.parallel.shard > 1;
    has_tensor = has_tensor || layout.parallel.tensor > 1;
    has_pipeline = has_pipeline || layout.parallel.pipeline > 1;
    has_context = has_context || layout.parallel.context > 1;
    has_expert = has_expert || layout.parallel.expert > 1;
  }
  CHECK((has_shard && has_tensor && has_pipeline && has_context && has_expert));
}

TEST_CASE("ranks that share a sample are one data-parallel rank") {
  const auto readers = [](const std::string& name) {
    for (const ProvenLayout& layout : proven_layouts()) {
      if (layout.name == name) return layout.readers();
    }
    return 0;
  };
  CHECK(readers("shard-2-optimizer") == 2);
  CHECK(readers("tensor-2") == 1);
  CHECK(readers("pipeline-2-1f1b") == 1);
  CHECK(readers("replica-2-shard-2") == 4);
  CHECK(readers("tensor-2-shard-2") == 2);
  CHECK(readers("pipeline-2-tensor-2") == 1);
}

}  // namespace scaletrain::launcher
