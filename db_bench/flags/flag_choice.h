#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>

#include "nacre/status.h"

namespace nacre::bench {

/// A word that a flag takes, and what it stands for.
template <typename T>
struct Choice {
  const char* name;
  T value;
};

/// `InvalidArgument`, with all of the words, if `name` is none of them.
template <typename T, size_t kCount>
Status Choose(const char* flag, const std::string& name, const Choice<T> (&choices)[kCount],
              T* value) {
  std::string names;
  for (const Choice<T>& choice : choices) {
    if (name == choice.name) {
      *value = choice.value;
      return Status::OK();
    }
    names += fmt::format("{}{}", names.empty() ? "" : ", ", choice.name);
  }
  return Status::InvalidArgument(fmt::format("--{}={}: must be one of {}", flag, name, names));
}

}  // namespace nacre::bench
