// The command a person types.
#include "launcher/build_version.h"
#include "launcher/cli.h"

int main(int argc, char** argv) {
  return scaletrain::launcher::run(argc, argv, scaletrain::launcher::build_version());
}
