#include "lib/core/version.h"

namespace scaletrain::core {

const char* version() { return SCALETRAIN_VERSION; }

}  // namespace scaletrain::core
