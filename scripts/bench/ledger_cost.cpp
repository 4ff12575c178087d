// CPU time that the time ledger adds to a step: ledger_cost STEPS MICRO_STEPS COLLECTIVES
//
// Opens the scopes that a step of MICRO_STEPS micro-batches and COLLECTIVES collectives has, with
// nothing between them, and takes the rows every ten steps. Prints nanoseconds of the thread's CPU
// time a step.
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "lib/core/process/planted_delay.h"
#include "lib/core/process/time_ledger.h"

namespace {

using namespace scaletrain::core;

double cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

void communicate() {
  {
    const TimeScope call(TimeRow::kCommunication);
    delay_if_planted(DelayPlace::kCollective);
  }
  const TimeScope wait(TimeRow::kCommunication);
}

void run_step(int micro_steps, int collectives) {
  const TimeScope step(TimeRow::kForward);
  for (int i = 0; i < micro_steps; ++i) {
    {
      const TimeScope data(TimeRow::kDataWait);
      delay_if_planted(DelayPlace::kBatch);
    }
    {
      const TimeScope copy(TimeRow::kHostToDevice);
      delay_if_planted(DelayPlace::kCopy);
    }
    {
      const TimeScope forward(TimeRow::kForward);
      delay_if_planted(DelayPlace::kForward);
    }
    const TimeScope backward(TimeRow::kBackward);
    delay_if_planted(DelayPlace::kBackward);
  }
  {
    const TimeScope backward(TimeRow::kBackward);
    for (int i = 0; i < collectives; ++i) communicate();
  }
  { const TimeScope copies(TimeRow::kCheckpoint); }
  const TimeScope optimizer(TimeRow::kOptimizer);
  delay_if_planted(DelayPlace::kOptimizer);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const long steps = std::atol(argv[1]);
  const int micro_steps = std::atoi(argv[2]), collectives = std::atoi(argv[3]);
  TimeLedger ledger;
  const LedgerOfThread use(&ledger);
  ledger.leave(TimeRow::kOther);
  double taken = 0;
  const double begin = cpu_ns();
  for (long step = 1; step <= steps; ++step) {
    run_step(micro_steps, collectives);
    if (step % 10 == 0) taken += sum_of(ledger.take());
  }
  std::printf("%.1f\n", (cpu_ns() - begin) / static_cast<double>(steps));
  return taken > 0 ? 0 : 1;
}
