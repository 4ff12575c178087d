// Address of a node that holds peer (in-memory) checkpoints of other nodes: host and port, and the
// job's secret, which every transfer requires (lib/replica/secret.h).
#pragma once

#include <string>
#include <vector>

namespace scaletrain::replica {

struct Address {
  std::vector<std::string> hosts;  // names or addresses of one node, tried in their order
  int port = 0;
  std::string secret;  // secret of the job; not part of the text
};

// "PORT@HOST,HOST"; of several with spaces between them.
std::string to_text(const Address& address);
std::string to_text(const std::vector<Address>& addresses);

// Parses to_text's result for a job with `secret`. Throws core::InternalError for anything else.
std::vector<Address> parse_addresses(const std::string& text, const std::string& secret);

}  // namespace scaletrain::replica
