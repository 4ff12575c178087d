#include "lib/format/checkpoint/train_state_fields.h"

namespace scaletrain::format {

std::string field_name(const TrainState& state, const void* member) {
  std::string result;
  visit_fields(state, [&](const char* name, const auto& field, const FieldRule& /*rule*/) {
    if (&field == member) result = name;
  });
  return result;
}

}  // namespace scaletrain::format
