#include "lib/observe/line_follower.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace scaletrain::observe {

void LineFollower::read(const std::function<void()>& begin_again, const Use& use,
                        std::size_t most) {
  std::error_code absent;
  const std::uintmax_t bytes = std::filesystem::file_size(file_, absent);
  if (absent || bytes == offset_) return;
  if (bytes < offset_) {
    offset_ = 0;
    begin_again();
  }
  std::ifstream file(file_, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset_));
  std::string line;
  // The end of the file within a line: it is incomplete.
  while (most > 0 && std::getline(file, line) && !file.eof()) {
    offset_ += line.size() + 1;
    const auto record = nlohmann::ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!record.is_object()) continue;
    use(record);
    --most;
  }
}

}  // namespace scaletrain::observe
