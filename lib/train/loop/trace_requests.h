// Requests of a user for a trace of the next steps (`scaletrain profile RUN`).
#pragma once

#include <cstdint>
#include <filesystem>

#include "lib/core/clock.h"

namespace scaletrain::train {

class TraceRequests {
 public:
  // `leads`: this rank reads the requests, and the step consensus brings them to the others.
  TraceRequests(std::filesystem::path run, bool leads);

  // Call before a step: number of steps of a new request, 0 if there is none. Looks for a request
  // once a second. Always 0 on ranks that do not lead.
  std::int64_t take();

 private:
  const std::filesystem::path run_;
  const bool leads_;
  core::SteadyTime looked_;
};

}  // namespace scaletrain::train
