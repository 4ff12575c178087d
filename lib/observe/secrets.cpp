#include "lib/observe/secrets.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace scaletrain::observe {

bool is_secret(const std::string& name) {
  std::string upper = name;
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char character) {
    return static_cast<char>(std::toupper(character));
  });
  if (upper.compare(0, 4, "AWS_") == 0) return true;
  constexpr std::array<std::string_view, 7> kParts{"KEY",    "TOKEN",      "SECRET", "PASSWORD",
                                                   "PASSWD", "CREDENTIAL", "JWT"};
  return std::any_of(kParts.begin(), kParts.end(), [&upper](std::string_view part) {
    return upper.find(part) != std::string::npos;
  });
}

std::string without_secrets(const std::string& argument) {
  std::string text = argument;
  const std::size_t scheme = text.find("://");
  const std::size_t equals = text.find('=');
  if (equals < scheme && is_secret(text.substr(0, equals))) {
    return text.substr(0, equals + 1) + "***";
  }
  if (scheme == std::string::npos) return text;
  const std::size_t host = scheme + 3;
  if (const std::size_t query = text.find('?', host); query != std::string::npos) {
    text.replace(query + 1, std::string::npos, "***");
  }
  const std::size_t path = text.find('/', host);
  const std::size_t at = text.rfind('@', path);
  if (at != std::string::npos && at > host) text.replace(host, at - host, "***");
  return text;
}

}  // namespace scaletrain::observe
