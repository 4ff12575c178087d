// Marks of the time ledger in the queue of a device, by timed events: CUDA events on a GPU.
//
// An event is read once the device has passed it, one or more steps later, so that the host waits
// for nothing. Time in which the queue is empty, as during a wait for data, belongs to the row that
// the host is in.
#pragma once

#include <c10/core/Device.h>

#include <memory>

#include "lib/core/process/time_ledger.h"

namespace scaletrain::dist {

// Marks in the current stream of the thread that places them. Waits until the device is idle, as
// TimeLedger::use() needs. nullptr for a CPU, which has no queue.
std::unique_ptr<core::TimeMarks> make_time_marks(c10::Device device);

}  // namespace scaletrain::dist
