// Where a node keeps pieces of checkpoints in memory for others: how it can be reached, and the
// word without which nothing is taken or given there.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::replica {

struct Address {
  std::vector<std::string> hosts;  // names or addresses of one node, tried in their order
  int port = 0;
  std::string word;  // of letters and digits
};

// "WORD@PORT@HOST,HOST"; of several with spaces between them.
std::string to_text(const Address& address);
std::string to_text(const std::vector<Address>& addresses);

// What to_text made. Throws core::InternalError for anything else.
std::vector<Address> parse_addresses(const std::string& text);

// A word that nobody guesses.
std::string new_word();

}  // namespace scaletrain::replica
