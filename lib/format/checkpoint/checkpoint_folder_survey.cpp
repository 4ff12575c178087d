#include "lib/format/checkpoint/checkpoint_folder_survey.h"

#include "lib/core/error.h"
#include "lib/format/checkpoint/checkpoint_folder.h"

namespace scaletrain::format {

Survey survey_checkpoints(const std::filesystem::path& checkpoints) {
  Survey survey;
  for (const std::int64_t step : list_checkpoints(checkpoints)) {
    try {
      survey.states[step] = read_state(checkpoint_path(checkpoints, step));
    } catch (const core::Error& error) {
      survey.unread[step] = error.place() + ": " + error.found();
    }
  }
  return survey;
}

}  // namespace scaletrain::format
