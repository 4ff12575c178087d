// Messages between a hub and its ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace scaletrain::dist {

struct HubMessage {
  std::int32_t kind = 0;  // HubRules (hub.h) define its meaning and that of the numbers
  std::int32_t number = 0;
  std::int64_t step = 0;
  std::vector<std::byte> body = {};
};

// Wire format: this header, then the body. Both ends have the same byte order and layout.
struct HubHeader {
  std::int32_t kind = 0, number = 0;
  std::int64_t step = 0;
  std::uint64_t bytes = 0;  // size of the body
};

}  // namespace scaletrain::dist
