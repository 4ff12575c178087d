#include "launcher/output/line_filter.h"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <array>

namespace scaletrain::launcher {
namespace {

// What lands in the file of a filter for "apple" and "a,b" with the prefix "[r0]:".
std::string filtered(const std::vector<std::string>& pieces) {
  const core::Descriptor file(memfd_create("filtered", MFD_CLOEXEC));
  LineFilter filter(LogFile("/proc/self/fd/" + std::to_string(file.get())), {"apple", "a,b"},
                    "[r0]:");
  for (const std::string& piece : pieces) filter.take(piece);
  filter.finish();
  std::array<char, 4096> text{};
  const ssize_t count = pread(file.get(), text.data(), text.size(), 0);
  return {text.data(), static_cast<std::size_t>(count)};
}

TEST_CASE("lines with one of the texts are taken, whole, however they arrive") {
  CHECK(filtered({"one apple\ntwo pears\nthree a,b\n"}) == "[r0]:one apple\n[r0]:three a,b\n");
  CHECK(filtered({"one ap", "ple\ntwo", " pears\n"}) == "[r0]:one apple\n");
  CHECK(filtered({"10% apple\r20% pear\r"}) == "[r0]:10% apple\n");
}

TEST_CASE("a last line without an end counts, nothing else is added") {
  CHECK(filtered({"apple"}) == "[r0]:apple\n");
  CHECK(filtered({"pear"}).empty());
  CHECK(filtered({}).empty());
}

TEST_CASE("without a file nothing is taken") {
  LineFilter filter;
  filter.take("apple\n");
  filter.finish();
}

}  // namespace
}  // namespace scaletrain::launcher
