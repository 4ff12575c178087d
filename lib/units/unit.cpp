#include "lib/units/unit.h"

#include <utility>

namespace scaletrain::units {

Flow run(std::span<const Unit> units, Flow input, const Context& context) {
  Flow flow = std::move(input);
  for (const Unit& unit : units) flow = unit.run(std::move(flow), context);
  return flow;
}

}  // namespace scaletrain::units
