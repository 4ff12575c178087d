#include "lib/observe/journal.h"

#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "lib/core/clock.h"
#include "lib/core/text/json_text.h"
#include "lib/observe/line_writer.h"

namespace scaletrain::observe {

std::string journal_line(const std::string& event, int attempt,
                         const nlohmann::ordered_json& fields, double time) {
  nlohmann::ordered_json line{{"event", event}, {"attempt", attempt}};
  for (const auto& field : fields.items()) {
    if (!field.value().is_null()) line[field.key()] = field.value();
  }
  line["time"] = time;
  return core::json_text(line);
}

RunJournal::RunJournal(const std::filesystem::path& run,
                       std::shared_ptr<core::Housekeeping> housekeeping)
    : file_(run / "journal.jsonl"), housekeeping_(std::move(housekeeping)) {}

void RunJournal::write(const std::string& event, int attempt,
                       const nlohmann::ordered_json& fields) {
  std::error_code ignored;
  std::filesystem::create_directories(file_.parent_path(), ignored);
  LineWriter(file_, housekeeping_).append(journal_line(event, attempt, fields, core::unix_time()));
}

}  // namespace scaletrain::observe
