// Stays at the peak.
#include "lib/optim/decay.h"

namespace scaletrain::optim {

Decay make_constant(const recipe::Component& /*config*/, DecaySpan /*span*/) {
  return [](std::int64_t /*step*/) { return 1.0; };
}

}  // namespace scaletrain::optim
