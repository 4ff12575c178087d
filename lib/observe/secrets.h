// Secrets, found by their names: they must not be written into a run's folder.
#pragma once

#include <string>

namespace scaletrain::observe {

// True if a variable or option of this name holds a secret by its name: KEY, TOKEN, SECRET,
// PASSWORD, PASSWD, CREDENTIAL or JWT as a part, or AWS_ in front.
bool is_secret(const std::string& name);

// Returns `argument` with the user, password and query of a URL, and the value of NAME=VALUE with a
// secret NAME, replaced by "***".
std::string without_secrets(const std::string& argument);

}  // namespace scaletrain::observe
