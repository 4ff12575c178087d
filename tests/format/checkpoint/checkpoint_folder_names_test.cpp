#include "lib/format/checkpoint/checkpoint_folder_names.h"

#include <doctest/doctest.h>

#include "lib/format/checkpoint/checkpoint_folder.h"

using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

TEST_CASE("a checkpoint is called after its step") {
  CHECK(checkpoint_name(0) == "step-00000000");
  CHECK(checkpoint_name(1200) == "step-00001200");
  CHECK(checkpoint_name(123456789012) == "step-123456789012");
}

TEST_CASE("only names of checkpoints have a step") {
  CHECK(step_of_name("step-00001200") == 1200);
  CHECK(step_of_name("step-00001200.old") == 1200);
  CHECK(step_of_name("step-123456789012") == 123456789012);
  for (const char* name :
       {"", "step-", "step-7", "step-00000007x", "step-000000007", "step--0000007",
        "step-00000007.tmp.12", "step-99999999999999999999", "latest", ".old"}) {
    CAPTURE(name);
    CHECK(step_of_name(name) == std::nullopt);
  }
}
