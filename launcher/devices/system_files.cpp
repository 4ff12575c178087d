#include "launcher/devices/system_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>

#include "lib/core/descriptor.h"

namespace scaletrain::launcher {

std::optional<std::string> system_text(const std::filesystem::path& file, int* error) {
  constexpr std::size_t kMostBytes = 1 << 20;
  const core::Descriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 16384> buffer{};
  ssize_t count = -1;
  while (fd && text.size() < kMostBytes &&
         (count = ::read(fd.get(), buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  if (count >= 0) return text;
  if (error != nullptr) *error = errno;
  return std::nullopt;
}

std::vector<double> numbers_of(std::string_view text) {
  std::vector<double> numbers;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\n"), text.size()));
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) return numbers;
    numbers.push_back(number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
}

std::optional<double> system_number(const std::filesystem::path& file, int* error) {
  const std::optional<std::string> text = system_text(file, error);
  if (!text) return std::nullopt;
  const std::vector<double> numbers = numbers_of(*text);
  return numbers.empty() ? std::nullopt : std::optional(numbers.front());
}

std::vector<std::string> system_names(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator(folder, absent)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace scaletrain::launcher
