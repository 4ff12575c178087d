// The command a person types.
#include "launcher/cli.h"

int main(int argc, char** argv) { return scaletrain::launcher::run(argc, argv); }
