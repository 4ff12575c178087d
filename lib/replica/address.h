// Where a node keeps pieces of checkpoints in memory for others: how it can be reached, and the
// job's secret, without which nothing is taken or given there (lib/replica/secret.h).
#pragma once

#include <string>
#include <vector>

namespace scaletrain::replica {

struct Address {
  std::vector<std::string> hosts;  // names or addresses of one node, tried in their order
  int port = 0;
  std::string secret;  // of the job; not part of the text
};

// "PORT@HOST,HOST"; of several with spaces between them.
std::string to_text(const Address& address);
std::string to_text(const std::vector<Address>& addresses);

// What to_text made, of a job with `secret`. Throws core::InternalError for anything else.
std::vector<Address> parse_addresses(const std::string& text, const std::string& secret);

}  // namespace scaletrain::replica
