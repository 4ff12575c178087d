// Paths that are URLs: "s3://bucket/key", "https://host/path", "pipe:command"; everything else is a
// local file.
#pragma once

#include <string>
#include <string_view>

namespace scaletrain::core {

// "s3" of "s3://bucket/key", "pipe" of "pipe:cat x.tar", "" for a local path. Lower-case only.
std::string_view url_scheme(std::string_view path);

inline bool is_url(std::string_view path) { return !url_scheme(path).empty(); }

// For messages and logs: without user, password and query, control characters escaped. A command
// shows only its program and the file that it names, since any of its words may be a secret.
std::string shown_path(std::string_view path);

// Returns the part after the last '/', without a query; for a command, its last file.
std::string base_name(std::string_view path);

// True if the URL carries a secret: a user or password, or a parameter that is named as one or as a
// signature. Such a URL must not be stored.
bool holds_secret(std::string_view url);

}  // namespace scaletrain::core
