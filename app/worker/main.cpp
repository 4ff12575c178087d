// scaletrain-worker: one process per device.
#include "app/worker/worker_main.h"

int main(int argc, char** argv) { return scaletrain::app::worker_main(argc, argv, {}); }
