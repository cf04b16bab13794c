#pragma once

#include <memory>

#include "adapters/c/c_types.h"

namespace nacre {

/// The options with the bounds that iterators have to have; these stay in `*bounds`.
ReadOptions WithBounds(const nacre_readoptions_t& options,
                       std::shared_ptr<const IteratorBounds>* bounds);

/// Hands `rep` to the caller.
nacre_iterator_t* Wrap(std::unique_ptr<Iterator> rep, std::shared_ptr<const IteratorBounds> bounds);

}  // namespace nacre
