#include "lib/units/parallel.h"

#include <ATen/Parallel.h>

namespace scaletrain::units {

void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
                  const std::function<void(std::int64_t begin, std::int64_t end)>& body) {
  at::parallel_for(begin, end, grain, body);
}

}  // namespace scaletrain::units
