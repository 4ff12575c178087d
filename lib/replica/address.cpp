#include "lib/replica/address.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/text.h"

namespace scaletrain::replica {
namespace {

constexpr int kMostPort = 65535;

Address parse(const std::string& text, const std::string& secret) {
  std::istringstream parts(text);
  Address address;
  address.secret = secret;
  std::string port, hosts;
  std::getline(parts, port, '@');
  std::getline(parts, hosts);
  const auto number = core::parse_number<int>(port);
  if (!number || *number <= 0 || *number > kMostPort || hosts.empty()) {
    throw core::InternalError("the memory of a node",
                              fmt::format("has no address \"{}\"", core::printable(text)),
                              "give every node the same version of scaletrain");
  }
  address.port = *number;
  std::istringstream list(hosts);
  for (std::string host; std::getline(list, host, ',');) address.hosts.push_back(host);
  return address;
}

}  // namespace

std::string to_text(const Address& address) {
  return fmt::format("{}@{}", address.port, fmt::join(address.hosts, ","));
}

std::string to_text(const std::vector<Address>& addresses) {
  std::string text;
  for (const Address& one : addresses) text += (text.empty() ? "" : " ") + to_text(one);
  return text;
}

std::vector<Address> parse_addresses(const std::string& text, const std::string& secret) {
  std::istringstream words(text);
  std::vector<Address> addresses;
  for (std::string word; words >> word;) addresses.push_back(parse(word, secret));
  return addresses;
}

}  // namespace scaletrain::replica
