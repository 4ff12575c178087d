// Pictures that were decoded although libjpeg warned of them (/data/jpeg "lenient").
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_set>

namespace scaletrain::data {

class JpegWarnings {
 public:
  JpegWarnings() = default;
  ~JpegWarnings();  // warns of how many there were, where not all were named
  JpegWarnings(const JpegWarnings&) = delete;
  JpegWarnings& operator=(const JpegWarnings&) = delete;

  // The picture at `place` was used. Each is counted once; the first few are named in a warning.
  // Any thread.
  void add(const std::string& place, const std::string& warning);
  std::int64_t count() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_set<std::uint64_t> places_;  // their hashes
};

}  // namespace scaletrain::data
