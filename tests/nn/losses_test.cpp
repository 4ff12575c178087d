#include <doctest/doctest.h>

#include <stdexcept>

#include "lib/nn/loss.h"

namespace scaletrain::nn {

TEST_CASE("every row of losses.def makes a loss") {
  for (const char* name : {
#define SCALETRAIN_LOSS(name, ...) #name,
#include "lib/recipe/losses.def"
       }) {
    recipe::Loss loss;
    loss.name = name;
    CHECK(make_loss(loss) != nullptr);
  }
}

TEST_CASE("a loss that no row names is a mistake of the programmer") {
  recipe::Loss loss;
  loss.name = "hinge";
  CHECK_THROWS_WITH_AS(make_loss(loss), "no loss is called \"hinge\"", std::logic_error);
}

}  // namespace scaletrain::nn
