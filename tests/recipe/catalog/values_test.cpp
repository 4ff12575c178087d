#include "lib/recipe/catalog/values.h"

#include <doctest/doctest.h>

#include <stdexcept>

namespace scaletrain::recipe {

TEST_CASE("a component gives its options by type and nothing else") {
  Component component;
  component.name = "sgd";
  component.options = {{"momentum", 0.9}, {"nesterov", true}, {"n", std::int64_t{3}}};
  CHECK(component.number("momentum") == 0.9);
  CHECK(component.flag("nesterov"));
  CHECK(component.integer("n") == 3);
  CHECK_THROWS_WITH_AS((void)component.number("n"), "\"sgd\" has no key \"n\" of this type",
                       std::logic_error);
  CHECK_THROWS_AS((void)component.text("absent"), std::logic_error);
}

}  // namespace scaletrain::recipe
