// Declarations that the headers of sections (lib/recipe/sections/) share.
//
// A section has one header and one source file: its struct, whose members are its keys; describe(),
// which binds these to types, ranges and help; and check(), for what must hold between keys. A new
// key is a member and a line of describe().
#pragma once

#include <memory>

namespace scaletrain::recipe {

struct Node;     // lib/recipe/schema/node.h
class Problems;  // lib/recipe/schema/problems.h
class Type;      // lib/recipe/schema/type.h
using TypePtr = std::unique_ptr<Type>;

}  // namespace scaletrain::recipe
