#include "launcher/cli.h"

namespace scaletrain::launcher {

int run(int argc, char** argv) {
  (void)argv;
  return argc > 1 ? 2 : 0;
}

}  // namespace scaletrain::launcher
