// scaletrain-worker: one process per device.
int main() { return 0; }
