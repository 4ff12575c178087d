// Counts pictures that were decoded in spite of warnings of libjpeg (/data/jpeg "lenient").
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_set>

namespace scaletrain::data {

class JpegWarnings {
 public:
  JpegWarnings() = default;
  ~JpegWarnings();  // logs the total if not all pictures were named
  JpegWarnings(const JpegWarnings&) = delete;
  JpegWarnings& operator=(const JpegWarnings&) = delete;

  // Counts the picture at `place` once; the first few are named in a warning. May be called from
  // any thread.
  void add(const std::string& place, const std::string& warning);
  std::int64_t count() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_set<std::uint64_t> places_;  // hashes of places
};

}  // namespace scaletrain::data
