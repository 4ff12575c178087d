// The program's version, "0.1.0": from CMakeLists.txt, the one place that names it.
#pragma once

namespace scaletrain::core {

const char* version();

}  // namespace scaletrain::core
