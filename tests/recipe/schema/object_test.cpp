#include "lib/recipe/schema/object.h"

#include <doctest/doctest.h>

#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

TEST_CASE("a key that stands elsewhere, or that other programs call otherwise, is led to ours") {
  const auto remedy = [](const std::string& set) {
    const std::string error = error_of(minimal_recipe(), {set});
    return error.substr(error.find('\n') + 1);
  };
  CHECK(remedy("lr=1") == "  here it is optimizer.lr or swa.lr");
  CHECK(remedy("batch_size=1") == "  here it is batch.per_device");
  CHECK(remedy("num_epochs=1") == "  here it is \"epochs\"");
  CHECK(remedy("optimizer.learning_rate=1") == "  here it is \"lr\"");
  CHECK(remedy("data.train.urls=a.tar") == "  here it is \"shards\"");
}

}  // namespace scaletrain::recipe
