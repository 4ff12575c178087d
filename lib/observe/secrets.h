// Secrets, found by their names: they must not be written into a run's folder.
#pragma once

#include <string>

namespace scaletrain::observe {

// True if a variable or option of this name holds a secret by its name: KEY, TOKEN, SECRET,
// PASSWORD, PASSWD, CREDENTIAL or JWT as a part, or AWS_ in front.
bool is_secret(const std::string& name);

// `argument` without user, password and query of a URL, and without the value of NAME=VALUE where
// is_secret(NAME); "***" stands for what was there.
std::string without_secrets(const std::string& argument);

}  // namespace scaletrain::observe
