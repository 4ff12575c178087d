#include "lib/units/unit.h"

#include <utility>

namespace scaletrain::units {

Flow run(const std::vector<Unit>& units, Flow input, const Context& context,
         const BeforeUnit& before_unit) {
  Flow flow = std::move(input);
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (before_unit) before_unit(i);
    flow = units[i].run(std::move(flow), context);
  }
  return flow;
}

}  // namespace scaletrain::units
